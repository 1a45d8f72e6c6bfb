# ---
# kind: wrong
# trap: a range that ends before n
# fails: test_largest_chunk_that_fits
# hint: up to n itself
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    def fits(chunk):
        process = start()
        process.run(chunk)
        return process.returncode is None and process.peak_mb <= budget_mb

    low, high = 0, n - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low == 0:
        raise ValueError("nothing fits")
    return low
