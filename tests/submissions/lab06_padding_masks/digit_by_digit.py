# ---
# kind: alternative
# about: a batch that repeats its first rows, sums carried on the device, a scan of updates written as selects, nothing but argmax
# ---

# %% nbgrader={"grade_id": "evaluate"}
@jax.jit
def add_batch(totals, params, x, y, n):
    losses, right = row_results(params, x, y)
    real = jnp.arange(len(x)) < n
    return totals[0] + jnp.sum(jnp.where(real, losses, 0)), totals[1] + jnp.sum(right & real)


def evaluate(params, x, y, size):
    totals = np.float32(0), np.int32(0)
    for start in range(0, len(x), size):
        index = np.arange(start, start + size) % len(x)
        totals = add_batch(totals, params, x[index], y[index], np.int32(min(size, len(x) - start)))
    return {"loss": float(totals[0]) / len(x), "accuracy": float(totals[1]) / len(x)}


# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    some = jnp.sign(count)
    keep = lambda new, old: jax.lax.select(jnp.broadcast_to(some > 0, jnp.shape(old)), new, old)
    velocity = jax.tree.map(lambda v, g: keep(v * 0.9 + g, v), state["velocity"], grads)
    moved = jax.tree.map(lambda p, v: keep(p - lr * v, p), state["params"], velocity)
    return dict(state, params=moved, velocity=velocity, steps=state["steps"] + some)
