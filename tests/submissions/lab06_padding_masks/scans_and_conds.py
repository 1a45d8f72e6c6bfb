# ---
# kind: alternative
# about: weights in a dot product, lax.cond for the empty batch, sort instead of top_k, a scatter for the ring
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    weights = valid.astype(jnp.float32)
    x = jax.vmap(lambda row, ok: jax.lax.select(ok, row, jnp.zeros_like(row)))(x, valid)
    losses = row_losses(params, x, y)  # finite: a label that is no digit has a one-hot of zeros
    return jnp.dot(weights, losses) / jnp.clip(weights.sum(), 1.0)

# %% nbgrader={"grade_id": "standardise"}
def standardise(x, valid):
    weights = valid.astype(x.dtype)[:, None]
    x = jnp.where(weights > 0, x, 0.0)
    count = jnp.maximum(weights.sum(), 1)
    mean = x.sum(axis=0) / count
    centred = (x - mean) * weights
    return centred / (jnp.sqrt((centred**2).sum(axis=0) / count) + 0.1)

# %% nbgrader={"grade_id": "step"}
import optax


def step(state, grads, count, lr):
    def move(state):
        updates, trace = optax.trace(0.9).update(grads, optax.TraceState(state["velocity"]))
        return {
            "params": optax.apply_updates(state["params"], jax.tree.map(lambda u: -lr * u, updates)),
            "velocity": trace.trace,
            "steps": state["steps"] + 1,
        }

    return jax.lax.cond(count > 0, move, lambda state: state, state)

# %% nbgrader={"grade_id": "evaluate"}
@jax.jit
def losses_and_hits(params, x, y):
    return row_losses(params, x, y), (x @ params["w"] + params["b"]).argmax(axis=1) == y


def evaluate(params, x, y, size):
    losses, hits = [], []
    for start in range(0, len(x), size):
        rows = np.zeros((size, 64), "float32")
        targets = np.zeros(size, "int32")
        n = min(size, len(x) - start)
        rows[:n], targets[:n] = x[start : start + n], y[start : start + n]
        batch_losses, batch_hits = losses_and_hits(params, rows, targets)
        losses.extend(np.asarray(batch_losses)[:n].tolist())
        hits.extend(np.asarray(batch_hits)[:n].tolist())
    return {"loss": sum(losses) / len(losses), "accuracy": sum(hits) / len(hits)}

# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    order = jnp.argsort(jnp.where(valid, -losses, jnp.inf))[:4]
    taken = valid[order]
    return jnp.where(taken, order, -1), jnp.where(taken, losses[order], 0.0), taken

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    places = (ring["count"] + jnp.cumsum(keep) - 1) % 5
    places = jnp.where(keep, places, 5)  # outside: the write is dropped
    stored = ring["values"].at[places].set(values, mode="drop")
    return {"values": stored, "count": ring["count"] + jnp.sum(keep, dtype=jnp.int32)}


def recall(ring):
    held = jnp.minimum(ring["count"], 5)
    weights = jnp.arange(5) < held
    return jnp.where(held > 0, jnp.vdot(ring["values"], weights.astype(jnp.float32)) / jnp.maximum(held, 1), 0.0)

# %% nbgrader={"grade_id": "buckets"}
from functools import partial


def to_bucket(values):
    fitting = [size for size in BUCKETS if size >= len(values)]
    if not fitting:
        raise ValueError("too long")
    padded = np.zeros(min(fitting), values.dtype)
    padded[: len(values)] = values
    valid = np.zeros(len(padded), bool)
    valid[: len(values)] = True
    return padded, valid


@partial(jax.jit, static_argnums=())
def mean_where(values, valid):
    return values.mean(where=valid)


def bucketed_means(sequences):
    means = []
    for values in sequences:
        means.append(mean_where(*to_bucket(values)).item())
    return means
