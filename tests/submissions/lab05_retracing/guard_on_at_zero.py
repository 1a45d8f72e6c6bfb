# ---
# kind: wrong
# trap: takes '0' for on
# fails: test_guard_is_free_when_off
# hint: Not set, empty or '0' means off
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    if "TRACE_GUARD" in os.environ:
        function = eqx.debug.assert_max_traces(function, max_traces=max_traces)
    return jax.jit(function)
