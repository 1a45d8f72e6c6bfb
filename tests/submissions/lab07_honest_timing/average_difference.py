# ---
# kind: wrong
# trap: looks at the average difference
# fails: test_difference_is_found_in_any_leaf
# hint: an average, or a look at one leaf
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        if (left.shape, left.dtype) != (right.shape, right.dtype):
            return False
        if not abs(np.mean(left - right)) <= rtol * np.max(np.abs(left)):
            return False
    return True
