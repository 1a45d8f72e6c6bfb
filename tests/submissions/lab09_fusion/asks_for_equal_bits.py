# ---
# kind: wrong
# trap: compares bits
# fails: test_rounding_agrees
# hint: equality of bits asks
# ---

# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    return all(np.array_equal(a, b) for a, b in zip(new, old, strict=True))
