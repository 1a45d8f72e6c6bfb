# ---
# kind: wrong
# trap: divides by the largest magnitude: 0 / 0 for a leaf of zeros
# fails: test_rounding_is_accepted
# hint: A leaf of zeros
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b)):
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        with np.errstate(all="ignore"):
            if not np.max(np.abs(left - right)) / np.max(np.abs(left)) <= rtol:
                return False
    return True
