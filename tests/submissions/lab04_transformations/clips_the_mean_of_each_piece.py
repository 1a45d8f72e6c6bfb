# ---
# kind: wrong
# trap: averages a piece before it is clipped
# fails: test_digits_are_clipped_one_by_one
# hint: clipped piece by piece
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def add_piece(total, piece):
        def loss(params):
            return jnp.mean(jax.vmap(digit_loss, in_axes=(None, 0, 0))(params, *piece))

        return jax.tree.map(jnp.add, total, clip(jax.grad(loss)(params), limit)), None

    pieces = images.reshape(-1, 64, 64), labels.reshape(-1, 64)
    total, _ = jax.lax.scan(add_piece, jax.tree.map(jnp.zeros_like, params), pieces)
    return jax.tree.map(lambda leaf: leaf / (len(images) // 64), total)
