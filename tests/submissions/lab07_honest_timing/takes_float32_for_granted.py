# ---
# kind: wrong
# trap: writes float32 for every input
# fails: test_line_names_every_input
# hint: taken for granted
# ---

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    kinds = sorted({device.device_kind for leaf in leaves for device in leaf.devices()})
    inputs = [f"float32[{','.join(map(str, leaf.shape))}]" for leaf in leaves]
    versions = f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"
    cache = jax.config.jax_compilation_cache_dir or "no cache"
    parts = [*kinds, versions, *inputs, cache, BOUNDARY, RULE, f"{calls} warm calls"]
    return "; ".join(parts)
