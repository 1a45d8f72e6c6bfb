# ---
# kind: wrong
# trap: measures in one process, and takes what a chunk adds to its peak
# fails: test_largest_chunk_that_fits
# hint: start one for each
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    process = start()
    def fits(chunk):
        before = process.peak_mb
        process.run(chunk)
        return process.returncode is None and process.peak_mb - before <= budget_mb

    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low == 0:
        raise ValueError("nothing fits")
    return low
