# ---
# kind: wrong
# trap: moves row by row, so the entries of a row move together
# fails: test_flaws_are_noticed_everywhere
# hint: opposite ones cancel
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
def gradient_agrees(function, params):
    h = 0.01
    grads = jax.grad(function)(params)
    for name, leaf in params.items():
        places = [()] if jnp.ndim(leaf) == 0 else range(len(leaf))
        for i in places:
            up = function({**params, name: jnp.asarray(leaf).at[i].add(h)})
            down = function({**params, name: jnp.asarray(leaf).at[i].add(-h)})
            difference = (up - down) / (2 * h)
            if not jnp.abs(jnp.sum(grads[name][i]) - difference) < 0.02:
                return False
    return True
