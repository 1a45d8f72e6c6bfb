# ---
# kind: wrong
# trap: allows one trace whatever max_traces says
# fails: test_limit_is_the_argument
# hint: written into the code
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    if os.environ.get("TRACE_GUARD", "") not in ("", "0"):
        function = eqx.debug.assert_max_traces(function, max_traces=1)
    return jax.jit(function)
