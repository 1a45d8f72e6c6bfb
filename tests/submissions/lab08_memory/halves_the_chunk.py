# ---
# kind: wrong
# trap: halves the chunk until it fits
# fails: test_largest_chunk_that_fits
# hint: one more should not
# ---

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    """Halves the chunk until it fits."""
    chunk = n
    while chunk:
        process = start()
        process.run(chunk)
        if process.returncode is None and process.peak_mb <= budget_mb:
            return chunk
        chunk //= 2
    raise ValueError("nothing fits")
