# ---
# kind: wrong
# trap: compares the number of leaves, and not the structure
# fails: test_other_form_does_not_agree
# hint: a tree with an entry more
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    lefts, rights = jax.tree.leaves(a), jax.tree.leaves(b)
    if len(lefts) != len(rights):
        return False
    for left, right in zip(lefts, rights):
        if left.shape != right.shape or left.dtype != right.dtype:
            return False
        if not np.all(np.abs(left - right) <= rtol * np.max(np.abs(left))):
            return False
    return True
