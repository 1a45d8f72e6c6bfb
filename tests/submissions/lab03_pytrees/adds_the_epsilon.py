# ---
# kind: wrong
# trap: adds the epsilon to the variance, which forward does again
# fails: test_norm_keeps_its_meaning
# hint: their numbers stay as they are
# ---

# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    left = dict(state_dict)

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
        "var": take("norm.running_var") + 1e-5,
        "steps": take("norm.num_batches_tracked"),
    }
    if left:
        raise ValueError(f"no place for {', '.join(left)}")
    return params, stats
