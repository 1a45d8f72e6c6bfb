# ---
# kind: wrong
# trap: checks the first entry of each leaf
# fails: test_flaws_are_noticed_everywhere
# hint: wherever it is
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
def gradient_agrees(function, params):
    h = 0.01
    grads = jax.grad(function)(params)
    for name, leaf in params.items():
        place = (0,) * jnp.ndim(leaf)
        up, down = (float(function({**params, name: jnp.asarray(leaf).at[place].add(by)})) for by in (h, -h))
        if not abs(float(grads[name][place]) - (up - down) / (2 * h)) < 0.02:
            return False
    return True
