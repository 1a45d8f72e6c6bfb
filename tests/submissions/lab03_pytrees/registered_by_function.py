# ---
# kind: alternative
# about: sets of triples, optax's moving average, register_pytree_node with a plain class, a match on the parts of a name
# ---

# %% nbgrader={"grade_id": "validate_update"}
def contract(tree):
    return {
        (f"params{jax.tree_util.keystr(path)}", jnp.shape(leaf), jnp.asarray(leaf).dtype.name)
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    }


def validate_update(params, grads):
    odd = contract(params) ^ contract(grads)
    if odd or jax.tree.structure(params) != jax.tree.structure(grads):
        names = sorted({name for name, _, _ in odd})
        raise ValueError("gradient does not fit at: " + (", ".join(f"`{name}`" for name in names) or "the containers"))


# %% nbgrader={"grade_id": "ema_update"}
import optax


def ema_update(ema, params, decay):
    flat, structure = jax.tree.flatten(ema)
    fresh = structure.flatten_up_to(params)
    moved = [
        new
        if jnp.issubdtype(old.dtype, jnp.integer)
        else optax.incremental_update(new.astype("float32"), old.astype("float32"), 1 - decay).astype(old.dtype)
        for old, new in zip(flat, fresh, strict=True)
    ]
    return jax.tree.unflatten(structure, moved)


# %% nbgrader={"grade_id": "affine"}
class Affine:
    __slots__ = ("scale", "shift", "activation")

    def __init__(self, scale, shift, activation):
        self.scale, self.shift, self.activation = scale, shift, activation

    def __call__(self, x):
        function = getattr(jnp, self.activation)
        return function(jnp.add(jnp.multiply(self.scale, x), self.shift))


jax.tree_util.register_pytree_node(
    Affine, lambda it: ([it.scale, it.shift], it.activation), lambda name, leaves: Affine(*leaves, name)
)


# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    params = {"encoder": [Linear(None, None), None, Linear(None, None), None], "norm": {}, "head": Linear(None, None)}
    stats, wanted = {}, set()
    layers = {"encoder.0": params["encoder"][0], "encoder.2": params["encoder"][2], "head": params["head"]}
    for prefix, layer in layers.items():
        for part in ("weight", "bias"):
            wanted.add(f"{prefix}.{part}")
            array = jnp.array(state_dict[f"{prefix}.{part}"])
            setattr(layer, part, array.transpose() if part == "weight" else array)
    places = {"weight": (params["norm"], "scale"), "bias": (params["norm"], "shift"), "running_mean": (stats, "mean")}
    places |= {"running_var": (stats, "var"), "num_batches_tracked": (stats, "steps")}
    for name, (tree, place) in places.items():
        wanted.add(f"norm.{name}")
        tree[place] = jnp.array(state_dict[f"norm.{name}"])
    for name in state_dict:
        if name not in wanted:
            raise KeyError(name)
    return params, stats
