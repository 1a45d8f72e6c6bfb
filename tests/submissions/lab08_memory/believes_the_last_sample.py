# ---
# kind: wrong
# trap: takes the last sample of a killed process for its peak
# fails: test_killed_chunk_does_not_fit
# hint: before its peak is believed
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    def fits(chunk):
        process = start()
        process.run(chunk)
        return process.peak_mb <= budget_mb

    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(middle) else (low, middle - 1)
    if low == 0:
        raise ValueError("nothing fits")
    return low
