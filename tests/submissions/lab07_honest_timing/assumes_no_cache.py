# ---
# kind: wrong
# trap: says that there is no cache, without a look
# fails: test_line_says_the_cache_policy
# hint: nobody may guess it
# ---

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    kinds = sorted({device.device_kind for leaf in leaves for device in leaf.devices()})
    inputs = [f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves]
    versions = f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"
    cache = "no cache"
    parts = [*kinds, versions, *inputs, cache, BOUNDARY, RULE, f"{calls} warm calls"]
    return "; ".join(parts)
