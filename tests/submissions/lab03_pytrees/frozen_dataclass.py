# ---
# kind: alternative
# about: a frozen dataclass registered by its field names, eval_shape, one walk with tree.map that keeps None, counts as Python numbers
# ---

# %% nbgrader={"grade_id": "affine"}
@dataclass(frozen=True)
class Affine:
    scale: object
    shift: object
    activation: str

    def __call__(self, x):
        z = self.scale * x + self.shift
        return vars(jnp)[self.activation](z)


jax.tree_util.register_dataclass(Affine, data_fields=["scale", "shift"], meta_fields=["activation"])


# %% nbgrader={"grade_id": "ema_update"}
@jax.jit
def ema_update(ema, params, decay):
    def one(old, new):
        match old:
            case None:
                return None
            case _ if jnp.issubdtype(old.dtype, jnp.floating):
                return jnp.asarray(old + (1 - decay) * (new - old.astype(jnp.float32)), old.dtype)
            case _:
                return new

    return jax.tree.map(one, ema, params, is_leaf=lambda leaf: leaf is None)


# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    entries = {name: np.asarray(value) for name, value in state_dict.items()}
    weights = {name: value for name, value in entries.items() if value.ndim == 2}
    linear = lambda name: Linear(np.ascontiguousarray(weights[f"{name}.weight"].T), entries[f"{name}.bias"])
    params = {
        "head": linear("head"),
        "norm": {"shift": entries["norm.bias"], "scale": entries["norm.weight"]},
        "encoder": [linear("encoder.0"), None, linear("encoder.2"), None],
    }
    stats = {
        "steps": int(entries["norm.num_batches_tracked"]),
        "var": entries["norm.running_var"],
        "mean": entries["norm.running_mean"],
    }
    known = (
        "encoder.0.weight encoder.0.bias encoder.2.weight encoder.2.bias norm.weight norm.bias head.weight head.bias "
    )
    known += "norm.running_mean norm.running_var norm.num_batches_tracked"
    if odd := entries.keys() - set(known.split()):
        raise ValueError(f"unknown: {odd}")
    return params, stats
