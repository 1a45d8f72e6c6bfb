# ---
# kind: wrong
# trap: compares float64 with float32
# fails: test_other_form_does_not_agree
# hint: it is another computation
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        left, right = np.asarray(left), np.asarray(right)
        if left.shape != right.shape:
            return False
        if not np.max(np.abs(left - right)) <= rtol * np.max(np.abs(left)):
            return False
    return True
