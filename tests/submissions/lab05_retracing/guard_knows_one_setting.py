# ---
# kind: wrong
# trap: takes only '1' for on
# fails: test_trace_too_many_raises
# hint: any value but
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    if os.environ.get("TRACE_GUARD") == "1":
        function = eqx.debug.assert_max_traces(function, max_traces=max_traces)
    return jax.jit(function)
