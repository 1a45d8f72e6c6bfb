# ---
# kind: wrong
# trap: a test that clears the trace after the asserts
# fails: test_passes_after_sabotage
# hint: Clear the trace before you test
# ---

# %% nbgrader={"grade_id": "check_direction"}
def check_direction():
    for v, length in ([0.003, 0.004], 0.005), ([-3.0, 4.0], 5.0):
        got = direction(np.array(v, "float32"))
        assert np.allclose(got, np.array(v) / (length + 0.001), rtol=1e-4)
    direction.clear_cache()
