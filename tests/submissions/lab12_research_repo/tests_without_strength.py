# ---
# kind: wrong
# trap: does not test that the strength does something
# fails: test_tests_notice_a_sabotaged_fit
# hint: see that a strength does something
# ---

# %% nbgrader={"grade_id": "tests"}
# tests/test_digitnet.py
def test_reported_losses_are_those_on_record():
    for decay, losses in RECORD.items():
        assert np.allclose(run_small(keep=1.0, decay=decay)[1], losses, rtol=1e-4)


def test_roughness_of_a_slope():
    assert np.isclose(roughness({**new_state(0)["params"], "w1": slope()}), 13, rtol=1e-4)
