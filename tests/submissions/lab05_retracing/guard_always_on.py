# ---
# kind: wrong
# trap: guards whatever the variable says
# fails: test_guard_is_silent_when_off, test_guard_is_free_when_off
# hint: Nobody asked for a guard
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
def compile_guarded(function, max_traces=1):
    return jax.jit(eqx.debug.assert_max_traces(function, max_traces=max_traces))
