# ---
# kind: wrong
# trap: compares the gradient with itself
# fails: test_flaws_are_noticed_everywhere, test_nan_agrees_with_nothing
# hint: should be noticed
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
def gradient_agrees(function, params):
    first, second = (jax.jit(jax.grad(function))(params) for _ in range(2))
    return all(bool(np.allclose(a, b, equal_nan=True)) for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second)))
