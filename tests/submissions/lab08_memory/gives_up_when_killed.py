# ---
# kind: wrong
# trap: takes a killed process for the end of the search
# fails: test_killed_chunk_does_not_fit
# hint: Its return code should be asked
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    """Believes a killed process: the machine is full below the budget, so the job is hopeless."""
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        process = start()
        process.run(middle)
        if process.returncode == -9:
            raise ValueError("killed")
        low, high = (middle, high) if process.peak_mb <= budget_mb else (low, middle - 1)
    if low == 0:
        raise ValueError("nothing fits")
    return low
