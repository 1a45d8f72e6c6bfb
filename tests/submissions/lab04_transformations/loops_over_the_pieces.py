# ---
# kind: wrong
# trap: a Python loop over pieces
# fails: test_program_does_not_grow_with_the_digits
# hint: over pieces is unrolled
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def one(image, label):
        return clip(jax.grad(digit_loss)(params, image, label), limit)

    total = jax.tree.map(jnp.zeros_like, params)
    for start in range(0, len(images), 64):
        each = jax.vmap(one)(images[start : start + 64], labels[start : start + 64])
        total = jax.tree.map(lambda t, g: t + g.sum(axis=0), total, each)
    return jax.tree.map(lambda leaf: leaf / len(images), total)
