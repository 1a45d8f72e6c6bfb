# ---
# kind: wrong
# trap: lax.map in pieces stacks its results
# fails: test_plan_stays_in_the_budget
# hint: stacks them
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def one(image, label):
        return clip(jax.grad(digit_loss)(params, image, label), limit)

    each = jax.lax.map(lambda pair: one(*pair), (images, labels), batch_size=64)
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), each)
