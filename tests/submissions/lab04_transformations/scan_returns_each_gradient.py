# ---
# kind: wrong
# trap: scans over the digits and stacks what it gets
# fails: test_plan_stays_in_the_budget
# hint: Carry their sum
# ---

# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def one(image, label):
        return clip(jax.grad(digit_loss)(params, image, label), limit)

    _, each = jax.lax.scan(lambda carry, pair: (carry, one(*pair)), 0, (images, labels))
    return jax.tree.map(lambda leaf: leaf.mean(axis=0), each)
