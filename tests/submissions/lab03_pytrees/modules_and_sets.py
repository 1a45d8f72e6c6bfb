# ---
# kind: alternative
# about: an Equinox module, sets of paths, a table of places
# ---

# %% nbgrader={"grade_id": "validate_update"}
def validate_update(params, grads):
    missing = lambda leaf: leaf is None
    wanted = dict(jax.tree.leaves_with_path(params, is_leaf=missing))
    got = dict(jax.tree.leaves_with_path(grads, is_leaf=missing))
    text = lambda path: "params" + jax.tree_util.keystr(path)
    problems = [f"missing {text(path)}" for path in wanted.keys() - got.keys()]
    problems += [f"unexpected {text(path)}" for path in got.keys() - wanted.keys()]
    for path in wanted.keys() & got.keys():
        p, g = wanted[path], got[path]
        if (p is None) != (g is None):
            problems.append(f"one is None at {text(path)}")
        elif p is not None and (p.shape != g.shape or p.dtype != g.dtype):
            problems.append(f"{text(path)}: {g.dtype}{g.shape} for {p.dtype}{p.shape}")
    assert_same = jax.tree.structure(params, is_leaf=missing) == jax.tree.structure(grads, is_leaf=missing)
    if problems or not assert_same:
        raise ValueError("grads do not fit: " + ("; ".join(problems) or "other containers"))


# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    old, structure = jax.tree.flatten(ema)
    new = structure.flatten_up_to(params)
    mixed = [
        n if jnp.issubdtype(o.dtype, jnp.integer) else jnp.asarray(o + (1 - decay) * (n - o), o.dtype)
        for o, n in zip(old, new, strict=True)
    ]
    return jax.tree.unflatten(structure, mixed)


# %% nbgrader={"grade_id": "affine"}
import equinox as eqx


class Affine(eqx.Module):
    scale: jax.Array
    shift: jax.Array
    activation: str = eqx.field(static=True)

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)


# %% nbgrader={"grade_id": "convert"}
PLACES = {
    "encoder.0.weight": "w0",
    "encoder.0.bias": "b0",
    "encoder.2.weight": "w2",
    "encoder.2.bias": "b2",
    "head.weight": "w",
    "head.bias": "b",
    "norm.weight": "scale",
    "norm.bias": "shift",
    "norm.running_mean": "mean",
    "norm.running_var": "var",
    "norm.num_batches_tracked": "steps",
}


def convert(state_dict):
    if odd := PLACES.keys() ^ state_dict.keys():
        raise KeyError(f"missing or unknown: {sorted(odd)}")
    got = {place: np.array(state_dict[name]) for name, place in PLACES.items()}
    layer = lambda n: Linear(np.einsum("oi->io", got[f"w{n}"]), got[f"b{n}"])
    params = {
        "encoder": [layer(0), None, layer(2), None],
        "norm": {name: got[name] for name in ("scale", "shift")},
        "head": layer(""),
    }
    return params, {name: got[name] for name in ("mean", "var", "steps")}
