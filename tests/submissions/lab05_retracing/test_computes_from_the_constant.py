# ---
# kind: wrong
# trap: a test that computes what it expects from EPS
# fails: test_notices_another_constant
# hint: computes what it expects from EPS
# ---

# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    direction.clear_cache()
    for v, length in ([0.003, 0.004], 0.005), ([-3.0, 4.0], 5.0):
        got = direction(np.array(v, "float32"))
        assert np.allclose(got, np.array(v) / (length + EPS), rtol=1e-4)
