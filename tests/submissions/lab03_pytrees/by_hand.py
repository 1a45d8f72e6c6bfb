# ---
# kind: alternative
# about: recursion by hand, register_pytree_with_keys_class, KeyError from the dict
# ---

# %% nbgrader={"grade_id": "validate_update"}
def compare(path, p, g, odd):
    """Both trees at once, level by level."""
    if type(p) is not type(g) and not (hasattr(p, "shape") and hasattr(g, "shape")):
        odd += below(path, p) + below(path, g) or [path]
    elif isinstance(p, dict):
        for key in sorted(p.keys() | g.keys()):
            here = f"{path}[{key!r}]"
            if key in p and key in g:
                compare(here, p[key], g[key], odd)
            else:
                odd += below(here, p[key] if key in p else g[key]) or [here]
    elif isinstance(p, list | tuple):
        if len(p) != len(g):
            odd += below(path, p) + below(path, g)
            return
        for i in range(len(p)):
            compare(f"{path}[{i}]", p[i], g[i], odd)
    elif isinstance(p, Linear):
        compare(path + ".weight", p.weight, g.weight, odd)
        compare(path + ".bias", p.bias, g.bias, odd)
    elif p is not None and (p.shape, p.dtype) != (g.shape, g.dtype):
        odd.append(path)


def below(path, tree):
    return [path + jax.tree_util.keystr(sub) for sub, _ in jax.tree.leaves_with_path(tree)]


def validate_update(params, grads):
    odd = []
    compare("params", params, grads, odd)
    if odd:
        raise ValueError("These leaves do not fit:\n" + "\n".join(odd) + ".")


# %% nbgrader={"grade_id": "ema_update"}
def ema_update(ema, params, decay):
    if ema is None:
        return None
    if isinstance(ema, dict):
        return {name: ema_update(ema[name], params[name], decay) for name in ema}
    if isinstance(ema, list | tuple):
        return type(ema)(ema_update(old, new, decay) for old, new in zip(ema, params, strict=True))
    if isinstance(ema, Linear):
        return Linear(ema_update(ema.weight, params.weight, decay), ema_update(ema.bias, params.bias, decay))
    if "int" in str(ema.dtype):
        return params
    wide = decay * jnp.asarray(ema, "float32") + (1 - decay) * jnp.asarray(params, "float32")
    return wide.astype(ema.dtype)


# %% nbgrader={"grade_id": "affine"}
@jax.tree_util.register_pytree_with_keys_class
class Affine:
    def __init__(self, scale, shift, activation):
        self.scale, self.shift, self.activation = scale, shift, activation

    def __call__(self, x):
        return getattr(jnp, self.activation)(x * self.scale + self.shift)

    def tree_flatten_with_keys(self):
        key = jax.tree_util.GetAttrKey
        return ((key("scale"), self.scale), (key("shift"), self.shift)), (self.activation,)

    @classmethod
    def tree_unflatten(cls, names, leaves):
        made = object.__new__(cls)
        made.scale, made.shift = leaves
        (made.activation,) = names
        return made


# %% nbgrader={"grade_id": "convert"}
def convert(state_dict):
    known = {f"{layer}.{part}" for layer in ("encoder.0", "encoder.2", "norm", "head") for part in ("weight", "bias")}
    known |= {"norm.running_mean", "norm.running_var", "norm.num_batches_tracked"}
    for name in state_dict:
        if name not in known:
            raise ValueError("unknown entry " + name)
    d = {name: jnp.array(value) for name, value in state_dict.items()}
    first = Linear(weight=d["encoder.0.weight"].T, bias=d["encoder.0.bias"])
    second = Linear(weight=d["encoder.2.weight"].T, bias=d["encoder.2.bias"])
    head = Linear(weight=d["head.weight"].T, bias=d["head.bias"])
    norm = dict(scale=d["norm.weight"], shift=d["norm.bias"])
    stats = dict(mean=d["norm.running_mean"], var=d["norm.running_var"], steps=d["norm.num_batches_tracked"])
    return dict(encoder=[first, None, second, None], norm=norm, head=head), stats
