# ---
# kind: alternative
# about: a program compiled ahead of time for each shape
# ---

# %% nbgrader={"grade_id": "read_all"}
from functools import cache


@cache
def _program(rest, treedef, shapes):
    @jax.jit
    def run(arrays, page, corners, threshold):
        model = eqx.combine(jax.tree.unflatten(treedef, arrays), jax.tree.unflatten(treedef, rest))
        return jax.lax.map(lambda c: read_one(model, page, c, threshold), corners, batch_size=CHUNK)

    return run


def read_all(model, page, corners, threshold):
    leaves, treedef = jax.tree.flatten(model)
    arrays = [leaf if eqx.is_array(leaf) else None for leaf in leaves]
    rest = tuple(None if eqx.is_array(leaf) else leaf for leaf in leaves)
    run = _program(rest, treedef, None)
    return run(arrays, page, corners, threshold)


# %% nbgrader={"grade_id": "read_page"}
_compiled = {}


def read_page(model, page, corners, threshold):
    """Compiled ahead of time, once for each shape."""
    if len(corners) > CAPACITY:
        raise ValueError("too many fields")
    padded = np.pad(np.asarray(corners, "int32").reshape(-1, 2), ((0, CAPACITY - len(corners)), (0, 0)))
    page, threshold = np.asarray(page, "float32"), np.float32(threshold)
    arrays, rest = eqx.partition(model, eqx.is_array)
    key = (page.shape, str(jax.tree.map(jnp.shape, arrays)), rest.activation)
    if key not in _compiled:
        run = jax.jit(lambda arrays, *others: read_all(eqx.combine(arrays, rest), *others))
        _compiled[key] = run.lower(arrays, page, padded, threshold).compile()
    digits, shares = _compiled[key](arrays, page, padded, threshold)
    return np.asarray(digits)[: len(corners)], np.asarray(shares)[: len(corners)]
