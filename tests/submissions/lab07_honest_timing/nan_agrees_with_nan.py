# ---
# kind: wrong
# trap: takes NaN in the same place of both for equal
# fails: test_difference_is_found_in_any_leaf
# hint: NaN in both
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False

    def same(left, right):
        left, right = np.asarray(left), np.asarray(right)
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        return np.allclose(left, right, rtol=0, atol=rtol * np.nanmax(np.abs(left)), equal_nan=True)

    return all(jax.tree.leaves(jax.tree.map(same, a, b)))
