# ---
# kind: wrong
# trap: asks for equal bits
# fails: test_rounding_is_accepted
# hint: Equal bits are not asked for
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            return False
        if not np.array_equal(left, right):
            return False
    return True
