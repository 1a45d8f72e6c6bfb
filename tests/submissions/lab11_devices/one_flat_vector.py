# ---
# kind: alternative
# about: one flat vector travels, arrays from single devices, vmap over a cut axis
# ---

# %% nbgrader={"grade_id": "train_step"}
from jax.flatten_util import ravel_pytree


def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid):
        flat, back = ravel_pytree(jax.lax.pcast(params, ("data",), to="varying"))

        def total(flat):
            losses, right = row_results(back(flat), x, y)
            return jnp.where(valid, losses, 0.0).sum(), jnp.where(valid, right, 0).sum().astype(jnp.float32)

        (loss, right), grad = jax.value_and_grad(total, has_aux=True)(flat)
        all_ = jax.lax.psum(jnp.concatenate([grad, jnp.stack([loss, right, valid.sum().astype(jnp.float32)])]), "data")
        n = all_[-1]
        return back(all_[:-3] / n), all_[-3] / n, all_[-2] / n

    grads, loss, accuracy = jax.shard_map(
        body, mesh=MESH, in_specs=(P(), P("data"), P("data"), P("data")), out_specs=(P(), P(), P())
    )(params, x, y, valid)
    return {"w": params["w"] - lr * grads["w"], "b": params["b"] - lr * grads["b"]}, dict(loss=loss, accuracy=accuracy)


# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    rows = jax.reshard(jnp.arange(x.shape[0]), NamedSharding(mesh, P("data")))

    def row(i, values):
        kept = jax.random.uniform(jax.random.fold_in(key, i), values.shape) < 0.75
        return values * kept / 0.75

    return jax.vmap(row)(rows, x)


# %% nbgrader={"grade_id": "place"}
def place(params, x, y):
    where = NamedSharding(MESH, P("data"))
    devices = list(MESH.devices.flat)
    valid = np.zeros(BATCH, bool)
    valid[: len(x)] = True
    x = np.concatenate((x, np.zeros((BATCH - len(x), 64), "float32")))
    y = np.append(y, [0] * (BATCH - len(y))).astype("int32")

    def cut(a):
        parts = [jax.device_put(p, d) for p, d in zip(np.split(a, 8), devices)]
        return jax.make_array_from_single_device_arrays(a.shape, where, parts)

    return (
        jax.tree.map(lambda p: jax.device_put(p, NamedSharding(MESH, P(*[None] * p.ndim))), params),
        cut(x),
        cut(y),
        cut(valid),
    )
