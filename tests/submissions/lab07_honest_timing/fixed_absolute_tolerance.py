# ---
# kind: wrong
# trap: adds a fixed absolute tolerance
# fails: test_difference_is_found_in_any_leaf
# hint: absolute tolerance
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            return False
        if not np.allclose(left, right, rtol=0, atol=max(1e-6, rtol * np.abs(left).max())):
            return False
    return True
