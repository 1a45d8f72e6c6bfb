# ---
# kind: wrong
# trap: a norm for each leaf
# fails: test_long_tree_is_clipped
# hint: not a norm for each leaf
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    def one(leaf):
        return leaf / jnp.maximum(1.0, jnp.sqrt(jnp.sum(leaf**2)) / limit)

    return jax.tree.map(one, tree)
