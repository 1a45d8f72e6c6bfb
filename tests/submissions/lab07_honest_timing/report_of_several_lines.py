# ---
# kind: wrong
# trap: a report of several lines
# fails: test_line_names_device_versions_and_rules
# hint: one line
# ---

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    kinds = sorted({device.device_kind for leaf in leaves for device in leaf.devices()})
    inputs = [f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves]
    return f"""device: {", ".join(kinds)}
versions: jax {jax.__version__}, jaxlib {jax.lib.__version__}
inputs: {", ".join(inputs)}
cache: {jax.config.jax_compilation_cache_dir or "no cache"}
{BOUNDARY}; {RULE}
calls: {calls}"""
