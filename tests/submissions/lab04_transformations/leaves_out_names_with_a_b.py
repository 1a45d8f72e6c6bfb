# ---
# kind: wrong
# trap: leaves out every name that begins with a b
# fails: test_nested_layers_count
# hint: under any name
# ---

# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    def squares(tree):
        total = 0.0
        for name, part in tree.items():
            if isinstance(part, dict):
                total += squares(part)
            elif not name.startswith("b"):
                total += jnp.sum(part**2)
        return total

    return strength * squares(params)
