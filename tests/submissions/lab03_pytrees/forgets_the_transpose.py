# ---
# kind: wrong
# trap: takes the weights as they are
# fails: test_layers_have_parity
# hint: Each linear weight should be transposed
# ---

# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    left = dict(state_dict)

    def take(name):
        return jnp.asarray(left.pop(name))

    def linear(name):
        return Linear(turned(take(name + ".weight")), take(name + ".bias"))

    def turned(weight):
        return weight

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
    if left:
        raise ValueError(f"no place for {', '.join(left)}")
    return params, stats
