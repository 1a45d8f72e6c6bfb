# ---
# kind: wrong
# trap: takes the entries by position
# fails: test_entries_are_found_by_name
# hint: Positions are not names
# ---

# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    w0, b0, w1, b1, scale, shift, mean, var, steps, w2, b2 = map(jnp.asarray, state_dict.values())
    known = "encoder.0 encoder.2 norm head".split()
    for name in state_dict:
        if name.rpartition(".")[0] not in known:
            raise ValueError(name)
    params = {
        "encoder": [Linear(w0.T, b0), None, Linear(w1.T, b1), None],
        "norm": {"scale": scale, "shift": shift},
        "head": Linear(w2.T, b2),
    }
    return params, {"mean": mean, "var": var, "steps": steps}
