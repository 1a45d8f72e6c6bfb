# ---
# kind: wrong
# trap: starts a process for each chunk
# fails: test_few_processes_are_started
# hint: halve the range
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    best = 0
    for chunk in range(1, n + 1):
        process = start()
        process.run(chunk)
        if process.returncode is not None or process.peak_mb > budget_mb:
            break
        best = chunk
    if not best:
        raise ValueError("nothing fits")
    return best
