# ---
# kind: wrong
# trap: leaves out None, so the second layer has another index
# fails: test_statistics_are_no_parameters, test_layers_have_parity
# hint: a list with None for the activations
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
        "encoder": [linear("encoder.0"), linear("encoder.2")],
        "norm": {"scale": take("norm.weight"), "shift": take("norm.bias")},
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
