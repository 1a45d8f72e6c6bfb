# ---
# kind: alternative
# about: vmap over rows with a safe row, the square multiplied out, a step that scales by a flag, a ring that shifts, a count instead of a mask
# ---

# %% nbgrader={"grade_id": "masked_loss"}
def masked_loss(params, x, y, valid):
    def one(row, digit, ok):
        row = jnp.where(ok, row, jnp.zeros(64))
        digit = jnp.where(ok, digit, 0)
        scores = row @ params["w"] + params["b"]
        return jnp.where(ok, jnp.sum(scores**2) - 2 * scores[digit] + 1, 0.0)

    count = valid.sum()
    return jax.vmap(one)(x, y, valid).sum() / jnp.where(count > 0, count, 1)

# %% nbgrader={"grade_id": "standardise"}
def standardise(x, valid):
    def column(values):
        values = jnp.where(valid, values, 0.0)
        mean = jnp.average(values, weights=valid.astype("float32"))
        variance = jnp.average((values - mean) ** 2, weights=valid.astype("float32"))
        return jnp.where(valid, (values - mean) / (jnp.sqrt(variance) + 0.1), 0.0)

    return jax.vmap(column, in_axes=1, out_axes=1)(x)

# %% nbgrader={"grade_id": "step"}
def step(state, grads, count, lr):
    go = count > 0
    velocity, params = {}, {}
    for name, v in state["velocity"].items():
        velocity[name] = jnp.where(go, 0.9 * v + grads[name], v)
        params[name] = state["params"][name] - lr * go * velocity[name]
    return {"params": params, "velocity": velocity, "steps": state["steps"] + go.astype(jnp.int32)}

# %% nbgrader={"grade_id": "evaluate"}
def evaluate(params, x, y, size):
    loss = right = 0.0
    full = len(x) // size
    starts = [i * size for i in range(full)]
    if len(x) % size:
        starts.append(full * size)
    for start in starts:
        index = np.arange(start, start + size)
        valid = index < len(x)
        index = np.minimum(index, len(x) - 1)  # repeat the last row
        rows, targets = x[index], y[index]
        n = valid.sum()
        loss += float(loss_and_grad(params, rows, targets, valid)[0]) * n
        right += np.sum((np.argmax(rows @ params["w"] + params["b"], axis=1) == targets) & valid)
    return {"loss": loss / len(x), "accuracy": right / len(x)}

# %% nbgrader={"grade_id": "hardest"}
def hardest(losses, valid):
    clean = jnp.where(valid, losses, -jnp.inf)
    index, loss = [], []
    for _ in range(4):
        i = jnp.argmax(clean)
        index.append(i)
        loss.append(clean[i])
        clean = clean.at[i].set(-jnp.inf)
    loss = jnp.stack(loss)
    filled = jnp.arange(4) < valid.sum()
    return jnp.where(filled, jnp.stack(index), -1), jnp.where(filled, loss, 0), filled

# %% nbgrader={"grade_id": "remember"}
def remember(ring, values, keep):
    stored, count = ring["values"], ring["count"]
    for i in range(4):
        # The newest value comes in at the front, the oldest falls off.
        stored = jnp.where(keep[i], jnp.concatenate([values[i : i + 1], stored[:-1]]), stored)
        count = count + jnp.where(keep[i], 1, 0)
    return {"values": stored, "count": count}


def recall(ring):
    total = sum(jnp.where(i < ring["count"], ring["values"][i], 0) for i in range(5))
    return total / jnp.clip(ring["count"], 1, 5)

# %% nbgrader={"grade_id": "buckets"}
def to_bucket(values):
    size = next((size for size in sorted(BUCKETS) if len(values) <= size), None)
    if size is None:
        raise ValueError(f"no bucket holds {len(values)}")
    padded = np.concatenate([values, np.full(size - len(values), np.nan, values.dtype)])
    return padded, ~np.isnan(padded)


total_of_valid = jax.jit(lambda values, valid: jnp.where(valid, values, 0).sum())


def bucketed_means(sequences):
    return [float(total_of_valid(*to_bucket(values))) / len(values) for values in sequences]
