# ---
# kind: wrong
# trap: computes all features, then deletes them and collects
# fails: test_rows_stay_in_the_budget
# hint: Carry the sums
# ---

# %% nbgrader={"grade_id": "normal_equations"}
import gc


def normal_equations(network, x, y, strength):
    f = features(network, x)
    gram, moment = f.T @ f + strength * jnp.eye(128), f.T @ y
    del f
    gc.collect()
    return gram, moment
