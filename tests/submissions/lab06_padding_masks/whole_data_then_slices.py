# ---
# kind: alternative
# about: a mask in einsum, moments from sums, cond for the step, padding of all rows at once and slices, argsort, a scatter that drops, one jitted jnp.mean
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    weight = valid.astype(x.dtype)
    safe_x = jnp.where(valid.reshape(-1, 1), x, 0.0)
    safe_y = jnp.where(valid, y, -1)
    total = jnp.einsum("n,n->", weight, row_losses(params, safe_x, safe_y))
    count = weight.sum()
    return jax.lax.cond(count > 0, lambda: total / jnp.where(count > 0, count, 1.0), lambda: 0.0 * total)


# %% nbgrader={"grade_id": "standardise"}
def standardise(x, valid):
    x, valid = np.asarray(x), np.asarray(valid)
    out = np.zeros_like(x)
    if valid.any():
        rows = x[valid].astype(np.float64)
        out[valid] = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + 0.1)
    return out


# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    def go(state):
        velocity = {name: 0.9 * state["velocity"][name] + grads[name] for name in grads}
        params = {name: state["params"][name] - lr * velocity[name] for name in grads}
        return {"params": params, "velocity": velocity, "steps": state["steps"] + 1}

    return jax.lax.cond(jnp.equal(count, 0), lambda state: state, go, state)


# %% nbgrader={"grade_id": "evaluate"}
def evaluate(params, x, y, size):
    batches = max(1, -(-len(x) // size))
    rows, targets = np.zeros((batches * size, 64), np.float32), np.zeros(batches * size, np.int32)
    rows[: len(x)], targets[: len(x)] = x, y
    valid = np.arange(batches * size) < len(x)
    results = [
        row_results(params, rows[i : i + size], targets[i : i + size]) for i in range(0, batches * size, size)
    ]
    losses, right = (np.concatenate([np.asarray(part) for part in parts]) for parts in zip(*results, strict=True))
    return {"loss": np.mean(losses, where=valid), "accuracy": np.mean(right, where=valid)}


# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    order = jnp.argsort(jnp.where(valid, -losses, jnp.inf))[:4]
    filled = valid[order]
    return jnp.where(filled, order, -1), jnp.where(filled, losses[order], 0.0), filled


# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    position = ring["count"] + jnp.cumsum(keep) - 1
    slot = jnp.where(keep, position % 5, 5)
    count = (ring["count"] + keep.sum()).astype(jnp.int32)
    return {"values": ring["values"].at[slot].set(values, mode="drop"), "count": count}


def recall(ring):
    filled = jnp.arange(5) < jnp.minimum(ring["count"], 5)
    return jnp.where(ring["count"] == 0, 0.0, jnp.sum(ring["values"], where=filled) / jnp.maximum(filled.sum(), 1))


# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    at = int(np.searchsorted(BUCKETS, len(values)))
    if at == len(BUCKETS):
        raise ValueError("no bucket is large enough")
    padded = np.full(BUCKETS[at], 7.0, np.float32)
    padded[: len(values)] = values
    valid = np.zeros(BUCKETS[at], bool)
    valid[: len(values)] = True
    return padded, valid


mean_of_valid = jax.jit(lambda values, valid: jnp.mean(values, where=valid))


def bucketed_means(sequences):
    return [mean_of_valid(*to_bucket(values)).item() for values in sequences]
