# ---
# kind: alternative
# about: pads inside, scans over chunks, jits with the model split by hand
# ---

# %% nbgrader={"grade_id": "read_all"}
def read_all(model, page, corners, threshold):
    leaves, tree = jax.tree.flatten(model)
    return _scanned(tree, tuple(leaf if callable(leaf) else None for leaf in leaves))(
        [leaf for leaf in leaves if not callable(leaf)], page, corners, threshold
    )


@cache
def _scanned(tree, functions):
    @jax.jit
    def run(arrays, page, corners, threshold):
        arrays = iter(arrays)
        model, n = jax.tree.unflatten(tree, [next(arrays) if f is None else f for f in functions]), len(corners)
        chunks = jnp.pad(corners, ((0, -n % CHUNK), (0, 0))).reshape(-1, CHUNK, 2)

        def body(_, chunk):
            return None, jax.vmap(read_one, in_axes=(None, None, 0, None))(model, page, chunk, threshold)

        found, shares = jax.lax.scan(body, None, chunks)[1]
        return found.reshape(-1)[:n], shares.reshape(-1)[:n]

    return run


# %% nbgrader={"grade_id": "read_one"}
def read_one(model, page, corner, threshold):
    crop = jax.lax.dynamic_slice_in_dim(jax.lax.dynamic_slice_in_dim(page, corner[0], 8, 0), corner[1], 8, 1)
    empty = crop.max() < 0.1
    safe = jnp.where(empty, jnp.eye(8), crop)
    shares = jax.nn.softmax(score(model, attend(model, embed(model, prepare(safe)))))
    digit, best = shares.argmax(), shares.max()
    sure = jnp.logical_and(best >= threshold, ~empty)
    return jax.lax.select(sure, digit, jnp.full_like(digit, -1)), best * ~empty
