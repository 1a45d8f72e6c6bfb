# ---
# kind: wrong
# trap: reads the variable when the cell is run
# fails: test_trace_too_many_raises
# hint: not when the cell is run
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
GUARD = os.environ.get("TRACE_GUARD", "") not in ("", "0")


def compile_guarded(function, max_traces=1):
    return jax.jit(eqx.debug.assert_max_traces(function, max_traces=max_traces) if GUARD else function)
