# ---
# kind: wrong
# trap: names the first device there is, not that of the inputs
# fails: test_line_names_device_versions_and_rules
# hint: not of the first device there is
# ---

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    kinds = [jax.devices()[0].device_kind]
    inputs = [f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves]
    versions = f"jax {jax.__version__}, jaxlib {jax.lib.__version__}"
    cache = jax.config.jax_compilation_cache_dir or "no cache"
    parts = [*kinds, versions, *inputs, cache, BOUNDARY, RULE, f"{calls} warm calls"]
    return "; ".join(parts)
