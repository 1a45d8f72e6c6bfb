# ---
# kind: wrong
# trap: a test whose input is so long that the constant does not matter
# fails: test_notices_another_constant
# hint: its input is so long
# ---

# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    direction.clear_cache()
    assert np.allclose(direction(np.array([-30.0, 40.0], "float32")), [-0.6, 0.8], atol=1e-2)
