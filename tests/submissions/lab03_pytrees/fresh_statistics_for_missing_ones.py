# ---
# kind: wrong
# trap: starts the statistics anew where they are missing
# fails: test_other_checkpoints_are_refused
# hint: lacks an entry
# ---

# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    left = dict(state_dict)
    take = lambda name: jnp.asarray(left.pop(name))
    linear = lambda name: Linear(take(name + ".weight").T, take(name + ".bias"))
    params = {
        "encoder": [linear("encoder.0"), None, linear("encoder.2"), None],
        "norm": {"scale": take("norm.weight"), "shift": take("norm.bias")},
        "head": linear("head"),
    }
    fresh = jnp.zeros_like(params["norm"]["scale"])
    stats = {
        "mean": jnp.asarray(left.pop("norm.running_mean", fresh)),
        "var": jnp.asarray(left.pop("norm.running_var", fresh + 1)),
        "steps": take("norm.num_batches_tracked"),
    }
    if left:
        raise KeyError(f"no place for {', '.join(left)}")
    return params, stats
