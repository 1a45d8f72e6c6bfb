# ---
# kind: wrong
# trap: says nothing of boundary and synchronisation
# fails: test_line_names_device_versions_and_rules
# hint: BOUNDARY and RULE
# ---

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    kinds = sorted({device.device_kind for leaf in leaves for device in leaf.devices()})
    inputs = [f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves]
    versions = f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"
    cache = jax.config.jax_compilation_cache_dir or "no cache"
    parts = [*kinds, versions, *inputs, cache, "timed with care", f"{calls} warm calls"]
    return "; ".join(parts)
