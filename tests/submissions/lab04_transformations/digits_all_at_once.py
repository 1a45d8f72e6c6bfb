# ---
# kind: wrong
# trap: all gradients at once, where a sum is wanted
# fails: test_plan_stays_in_the_budget
# hint: All gradients at once
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def one(image, label):
        return clip(jax.grad(digit_loss)(params, image, label), limit)

    return jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(one)(images, labels))
