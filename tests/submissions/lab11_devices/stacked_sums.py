# ---
# kind: alternative
# about: stacked sums, a draw that is told where to lie
# ---

# %% nbgrader={"grade_id": "train_step"}
def train_step(params, x, y, valid, lr):
    def body(params, x, y, valid, lr):
        def total(p):
            losses, right = row_results(p, x, y)
            per = jnp.stack(
                [jnp.where(valid, losses, 0), jnp.where(valid, right, 0).astype("float32"), valid.astype("float32")]
            )
            sums = per.sum(axis=1)
            return sums[0], sums

        local = jax.tree.map(lambda p: jax.lax.pcast(p, "data", to="varying"), params)
        grads, sums = jax.grad(total, has_aux=True)(local)
        grads, (loss, right, n) = jax.lax.psum((grads, sums), "data")
        return jax.tree.map(lambda p, g: p - lr / n * g, params, grads), {"accuracy": right / n, "loss": loss / n}

    f = partial(jax.shard_map, mesh=MESH, in_specs=(P(), *[P("data")] * 3, P()), out_specs=P())(body)
    return f(params, x, y, valid, lr)


# %% nbgrader={"grade_id": "dropped"}
def dropped(key, x, mesh):
    keep = jax.random.bernoulli(key, 0.75, x.shape, out_sharding=NamedSharding(mesh, P("data")))
    return jnp.where(keep, x / 0.75, 0.0)
