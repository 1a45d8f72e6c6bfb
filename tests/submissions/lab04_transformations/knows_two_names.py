# ---
# kind: wrong
# trap: takes w and b for the whole tree
# fails: test_any_tree_is_clipped
# hint: names of this model only
# ---

# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    norm = jnp.sqrt(sum(jnp.sum(tree[name] ** 2) for name in ("w", "b") if name in tree))
    return {name: leaf / jnp.maximum(1.0, norm / limit) for name, leaf in tree.items()}
