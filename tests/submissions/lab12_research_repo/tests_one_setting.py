# ---
# kind: wrong
# trap: compares one setting with the record
# fails: test_tests_notice_a_sabotaged_fit
# hint: for more than one setting
# ---

# %% nbgrader={"grade_id": "tests"}
# tests/test_digitnet.py
def test_record():
    assert np.allclose(run_small(keep=1.0, decay=0.01)[1], RECORD[0.01], rtol=1e-4)


def test_roughness_of_a_slope():
    assert np.isclose(roughness({**new_state(0)["params"], "w1": slope()}), 13, rtol=1e-4)


def test_strength_smooths():
    params = [run_small(keep=1.0, rough=rough)[0]["params"] for rough in (0.0, 5.0)]
    assert roughness(params[1]) < 0.7 * roughness(params[0])
