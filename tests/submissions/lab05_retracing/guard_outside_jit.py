# ---
# kind: wrong
# trap: wraps the guard around the compiled function
# fails: test_known_shapes_never_raise
# hint: A guard outside of jit counts calls
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    compiled = jax.jit(function)
    if os.environ.get("TRACE_GUARD", "") not in ("", "0"):
        return eqx.debug.assert_max_traces(compiled, max_traces=max_traces)
    return compiled
