# ---
# kind: wrong
# trap: wraps the function with a counter that never raises
# fails: test_guard_is_free_when_off
# hint: A wrapper that only counts
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    on = os.environ.get("TRACE_GUARD", "") not in ("", "0")
    return jax.jit(eqx.debug.assert_max_traces(function, max_traces=max_traces if on else None))
