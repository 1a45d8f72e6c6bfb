# ---
# kind: wrong
# trap: a test that raises on the honest code
# fails: test_honest_code_passes
# hint: divided by its length + 0.001
# ---

# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    direction.clear_cache()
    got = direction(np.array([0.003, 0.004], "float32"))
    assert np.allclose(got, [0.6, 0.8], rtol=1e-4)
