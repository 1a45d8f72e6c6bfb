# ---
# kind: wrong
# trap: names the version of jax alone
# fails: test_line_names_device_versions_and_rules
# hint: versions of jax and jaxlib
# ---

# %% nbgrader={"grade_id": "report_line"}
def report_line(placed, calls):
    leaves = jax.tree.leaves(placed)
    (device,) = {device for leaf in leaves for device in leaf.devices()}
    inputs = " ".join(f"{leaf.dtype}[{','.join(map(str, leaf.shape))}]" for leaf in leaves)
    cache = jax.config.jax_compilation_cache_dir or "no cache"
    return f"{device.device_kind}, jax {jax.__version__}, {inputs}, {cache}, {calls} calls, {BOUNDARY}, {RULE}"
