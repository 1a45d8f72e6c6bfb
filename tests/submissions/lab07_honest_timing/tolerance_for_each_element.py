# ---
# kind: wrong
# trap: compares relative to each element
# fails: test_rounding_is_accepted
# hint: belongs to the leaf
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            return False
        if not np.all(np.abs(left - right) <= rtol * np.abs(left)):
            return False
    return True
