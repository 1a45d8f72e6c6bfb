# ---
# kind: wrong
# trap: draws a line through what 1 and 2 need
# fails: test_largest_chunk_that_fits
# hint: needs jump
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    peaks = []
    for chunk in (1, 2):
        process = start()
        process.run(chunk)
        peaks.append(process.peak_mb)
    if peaks[0] > budget_mb:
        raise ValueError("nothing fits")
    return min(n, 1 + int((budget_mb - peaks[0]) / (peaks[1] - peaks[0])))
