# ---
# kind: wrong
# trap: compares the last leaf alone
# fails: test_difference_is_found_in_any_leaf
# hint: a look at one leaf
# ---

# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    if jax.tree.structure(a) != jax.tree.structure(b):
        return False
    forms = [[(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)] for tree in (a, b)]
    if forms[0] != forms[1]:
        return False
    left, right = (np.asarray(jax.tree.leaves(tree)[-1]) for tree in (a, b))
    return bool(np.max(np.abs(left - right)) <= rtol * np.max(np.abs(left)))
