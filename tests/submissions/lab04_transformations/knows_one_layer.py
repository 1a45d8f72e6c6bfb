# ---
# kind: wrong
# trap: takes the top layer's w alone
# fails: test_nested_layers_count
# hint: knows one layer only
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    return strength * jnp.sum(params["w"] ** 2)
