# ---
# kind: wrong
# trap: a test with one short and positive vector
# fails: test_notices_an_edited_function
# hint: One short vector is not enough
# ---

# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    direction.clear_cache()
    assert np.allclose(direction(np.array([0.003, 0.004], "float32")), [0.5, 2 / 3], rtol=1e-4)
