# ---
# kind: wrong
# trap: counts the traces of all functions together
# fails: test_guards_count_for_themselves
# hint: A counter in a global
# ---

# %% nbgrader={"grade_id": "compile_guarded"}
TRACES = []


def compile_guarded(function, max_traces=1):
    if os.environ.get("TRACE_GUARD", "") in ("", "0"):
        return jax.jit(function)

    def counting(*arguments):
        TRACES.append(1)
        if len(TRACES) > max_traces:
            raise RuntimeError("traced too often")
        return function(*arguments)

    return jax.jit(counting)
