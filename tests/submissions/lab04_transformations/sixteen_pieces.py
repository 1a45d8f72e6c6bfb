# ---
# kind: wrong
# trap: sixteen pieces, whatever comes in
# fails: test_digits_are_clipped_one_by_one
# hint: for any multiple of 64
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def add_piece(i, total):
        part = [jax.lax.dynamic_slice_in_dim(array, 64 * i, 64) for array in (images, labels)]
        each = jax.vmap(lambda image, label: clip(jax.grad(digit_loss)(params, image, label), limit))(*part)
        return jax.tree.map(lambda t, g: t + g.sum(axis=0), total, each)

    total = jax.lax.fori_loop(0, 16, add_piece, jax.tree.map(jnp.zeros_like, params))
    return jax.tree.map(lambda leaf: leaf / len(images), total)
