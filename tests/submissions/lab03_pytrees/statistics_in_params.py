# ---
# kind: wrong
# trap: has the statistics in params as well
# fails: test_statistics_are_no_parameters
# hint: An optimizer would train a running mean
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
        "norm": {
            "scale": take("norm.weight"),
            "shift": take("norm.bias"),
            "mean": jnp.asarray(state_dict["norm.running_mean"]),
            "var": jnp.asarray(state_dict["norm.running_var"]),
        },
        "head": linear("head"),
    }
    stats = {
        "mean": take("norm.running_mean"),
        "var": take("norm.running_var"),
        "steps": take("norm.num_batches_tracked"),
    }
    if left:
        raise ValueError(f"no place for {', '.join(left)}")
    return params, stats
