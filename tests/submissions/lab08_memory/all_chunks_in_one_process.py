# ---
# kind: wrong
# trap: measures all chunks in the same process, whose peak never falls
# fails: test_largest_chunk_that_fits
# hint: A peak never falls
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    process = start()
    def fits(chunk):
        process.run(chunk)
        return process.returncode is None and process.peak_mb <= budget_mb

    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low == 0:
        raise ValueError("nothing fits")
    return low
