# ---
# kind: wrong
# trap: a picture that is steep in one direction alone
# fails: test_tests_notice_a_sabotaged_roughness
# hint: steeper in one direction
# ---

# %% nbgrader={"grade_id": "tests"}
# tests/test_digitnet.py
def test_reported_losses_are_those_on_record():
    for decay, losses in RECORD.items():
        assert np.allclose(run_small(keep=1.0, decay=decay)[1], losses, rtol=1e-4)


def test_ramp():
    w1 = np.repeat((np.arange(48) // 6)[:, None], 16, axis=1).astype("float32")
    assert np.isclose(roughness({"w1": w1}), 1, rtol=1e-4)


def test_strength_smooths():
    params = [run_small(keep=1.0, rough=rough)[0]["params"] for rough in (0.0, 5.0)]
    assert roughness(params[1]) < 0.7 * roughness(params[0])
