# ---
# kind: wrong
# trap: checks w and leaves out the bias
# fails: test_flaws_are_noticed_everywhere
# hint: one leaf
# ---

# %% nbgrader={"grade_id": "gradient_agrees"}
def gradient_agrees(function, params):
    h = 0.01
    grad = jax.grad(function)(params)["w"]
    for i in np.ndindex(params["w"].shape):
        up, down = (float(function({**params, "w": params["w"].at[i].add(by)})) for by in (h, -h))
        if not abs(float(grad[i]) - (up - down) / (2 * h)) < 0.02:
            return False
    return True
