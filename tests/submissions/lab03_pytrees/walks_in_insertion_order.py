# ---
# kind: wrong
# trap: flattens dicts in insertion order and pairs by position
# fails: test_fitting_gradients_are_accepted
# hint: a walk over items() does not
# ---

# %% nbgrader={"grade_id": "validate_update"}
def flat(tree, path):
    if isinstance(tree, dict):
        return [pair for key, sub in tree.items() for pair in flat(sub, f"{path}[{key!r}]")]
    if isinstance(tree, list):
        return [pair for i, sub in enumerate(tree) for pair in flat(sub, f"{path}[{i}]")]
    if isinstance(tree, Linear):
        return flat(tree.weight, path + ".weight") + flat(tree.bias, path + ".bias")
    return [(path, None if tree is None else (jnp.shape(tree), jnp.result_type(tree)))]


def validate_update(params, grads):
    wanted, got = flat(params, "params"), flat(grads, "params")
    if len(wanted) != len(got):
        raise ValueError("another number of leaves")
    odd = [path for a, b in zip(wanted, got, strict=True) if a != b for path in {a[0]: 0, b[0]: 0}]
    if odd:
        raise ValueError(" ".join(odd))
