# ---
# kind: wrong
# trap: a test with a wrong number in it
# fails: test_own_tests_pass
# hint: should pass on your own code
# ---

# %% nbgrader={"grade_id": "tests"}
# tests/test_digitnet.py
def test_reported_losses_are_those_on_record():
    for decay, losses in RECORD.items():
        assert np.allclose(run_small(keep=1.0, decay=decay)[1], losses, rtol=1e-4)


def test_roughness_of_a_slope():
    assert np.isclose(roughness({**new_state(0)["params"], "w1": slope()}), 37, rtol=1e-4)


def test_strength_smooths():
    params = [run_small(keep=1.0, rough=rough)[0]["params"] for rough in (0.0, 5.0)]
    assert roughness(params[1]) < 0.7 * roughness(params[0])
