# ---
# kind: wrong
# trap: tests that compare the functions with those that were there
# fails: test_tests_notice_a_sabotaged_fit, test_tests_notice_a_sabotaged_roughness
# hint: should pass
# ---

# %% nbgrader={"grade_id": "tests"}
# tests/test_digitnet.py
repaired = fit, roughness


def test_fit_is_mine():
    assert fit is repaired[0]


def test_roughness_is_mine():
    assert roughness is repaired[1]
