# ---
# kind: wrong
# trap: takes every entry that begins with a known word
# fails: test_other_checkpoints_are_refused
# hint: has one for which there is no place
# ---

# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    left = dict(state_dict)
    for name in left:
        if name.split(".")[0] not in ("encoder", "norm", "head"):
            raise ValueError(f"no place for {name}")

    def take(name):
        return jnp.asarray(left.pop(name))

    def linear(name):
        return Linear(turned(take(name + ".weight")), take(name + ".bias"))

    def turned(weight):
        return weight.T

    params = {
        "encoder": [linear("encoder.0"), None, linear("encoder.2"), None],
        "norm": {"scale": take("norm.weight"), "shift": take("norm.bias")},
        "head": linear("head"),
    }
    stats = {
        "mean": take("norm.running_mean"),
        "var": take("norm.running_var"),
        "steps": take("norm.num_batches_tracked"),
    }
    return params, stats
