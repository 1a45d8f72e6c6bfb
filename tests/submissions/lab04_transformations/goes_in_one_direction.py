# ---
# kind: wrong
# trap: one direction for all entries: opposite flaws cancel
# fails: test_flaws_are_noticed_everywhere
# hint: lets opposite ones cancel
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
def gradient_agrees(function, params):
    h = 0.01
    up, down = (float(function(jax.tree.map(lambda leaf: leaf + by, params))) for by in (h, -h))
    total = sum(float(leaf.sum()) for leaf in jax.tree.leaves(jax.grad(function)(params)))
    return abs(total - (up - down) / (2 * h)) < 0.02
