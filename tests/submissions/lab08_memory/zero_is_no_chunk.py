# ---
# kind: wrong
# trap: gives 0 where nothing fits
# fails: test_nothing_fits
# hint: 0 is no chunk
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    def fits(chunk):
        process = start()
        process.run(chunk)
        return process.returncode is None and process.peak_mb <= budget_mb

    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    return low
