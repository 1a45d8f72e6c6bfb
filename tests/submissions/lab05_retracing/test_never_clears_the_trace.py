# ---
# kind: wrong
# trap: a test that never clears the trace
# fails: test_notices_another_constant
# hint: it ran an old program
# ---

# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    for v, length in ([0.003, 0.004], 0.005), ([-3.0, 4.0], 5.0):
        got = direction(np.array(v, "float32"))
        assert np.allclose(got, np.array(v) / (length + 0.001), rtol=1e-4)
