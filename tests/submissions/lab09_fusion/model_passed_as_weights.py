# ---
# kind: alternative
# about: jax.jit on the weights, the activation closed over by the block's key
# ---

# %% nbgrader={"grade_id": "read_all"}
from functools import partial


@partial(jax.jit, static_argnums=0)
def block(activation, weights, page, corners, threshold):
    model = Model(weights, activation)
    read = partial(read_one, model, page, threshold=threshold)
    return jax.lax.map(read, corners, batch_size=8)


def read_all(model, page, corners, threshold):
    return block(model.activation, model.weights, page, corners, threshold)


# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = cut(page, corner)

    def read(crop):
        shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(crop)))))
        return jnp.where(shares.max() >= threshold, shares.argmax(), -1), shares.max()

    return jax.lax.cond(crop.max() < 0.1, lambda _: (jnp.argmax(jnp.zeros(2)) - 1, jnp.float32(0)), read, crop)


# %% nbgrader={"grade_id": "read_page"}
def read_page(model, page, corners, threshold):
    missing = CAPACITY - len(corners)
    if missing < 0:
        raise ValueError("too many fields")
    filled = np.concatenate([np.asarray(corners), np.zeros((missing, 2), "int32")]).astype("int32")
    answers = jax.device_get(read_all(model, page, jnp.asarray(filled), np.float32(threshold)))
    return tuple(part[: len(corners)] for part in answers)


# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    if len(new[0]) != len(old[0]):
        return False
    for digit, share, old_digit, old_share in zip(*map(np.asarray, new), *map(np.asarray, old), strict=True):
        if not abs(share - old_share) <= TOLERANCE:
            return False
        tie = abs(old_share - threshold) <= TOLERANCE
        if digit != old_digit and not (tie and -1 in (digit, old_digit)):
            return False
    return True
