# ---
# kind: wrong
# trap: divides by 1024, whatever comes in
# fails: test_digits_are_clipped_one_by_one
# hint: over all n digits
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def one(image, label):
        return clip(jax.grad(digit_loss)(params, image, label), limit)

    def add_piece(total, piece):
        each = jax.vmap(one)(*piece)
        return jax.tree.map(lambda t, g: t + g.sum(axis=0), total, each), None

    pieces = images.reshape(-1, 64, 64), labels.reshape(-1, 64)
    total, _ = jax.lax.scan(add_piece, jax.tree.map(jnp.zeros_like, params), pieces)
    return jax.tree.map(lambda leaf: leaf / 1024, total)
