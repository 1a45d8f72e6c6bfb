# ---
# kind: wrong
# trap: describes the first of several inputs
# fails: test_line_names_every_input
# hint: One leaf of several is not enough
# ---

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    kinds = sorted({device.device_kind for leaf in leaves for device in leaf.devices()})
    inputs = [f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves[:1]]
    versions = f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"
    cache = jax.config.jax_compilation_cache_dir or "no cache"
    parts = [*kinds, versions, *inputs, cache, BOUNDARY, RULE, f"{calls} warm calls"]
    return "; ".join(parts)
