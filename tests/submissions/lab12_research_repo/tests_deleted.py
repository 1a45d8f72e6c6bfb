# ---
# kind: wrong
# trap: tests that ask nothing
# fails: test_tests_notice_a_sabotaged_fit, test_tests_notice_a_sabotaged_roughness
# hint: each should make an
# ---

# %% nbgrader={"grade_id": "tests"}
# tests/test_digitnet.py
def test_fit():
    run_small()


def test_roughness():
    roughness(new_state(0)["params"])
