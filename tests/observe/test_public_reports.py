"""What people reported in public, repaired as they were told to, and what the tools then say.

The faults themselves, each with its named cause, are in `test_explain.py`, `test_stale.py`, `test_memory.py` and
`test_notebook.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from traceonce import explain, holders, stale, watch
from traceonce.errors import TraceOnceError

X = jnp.ones(2)


def test_a_learning_rate_in_the_optimizer_state_needs_one_program_where_a_closed_over_one_needs_three():
    # https://github.com/google-deepmind/optax/issues/577
    with watch() as closed_over:
        for rate in (0.1, 0.2, 0.3):
            optimizer = optax.sgd(rate)

            @jax.jit
            def step(params, state, optimizer=optimizer):
                updates, state = optimizer.update(X, state, params)
                return params + updates, state

            step(X, optimizer.init(X))
    injected = optax.inject_hyperparams(optax.sgd)(learning_rate=0.1)

    @watch
    @jax.jit
    def step_of_state(params, state):
        updates, state = injected.update(X, state, params)
        return params + updates, state

    params, state, reached = X, injected.init(X), []
    for rate in (0.1, 0.2, 0.3):
        state.hyperparams["learning_rate"] = jnp.float32(rate)
        params, state = step_of_state(params, state)
        reached.append(round(float(params[0]), 3))
    assert closed_over["step"].traces == 3
    assert [one.cause for one in explain(closed_over)] == ["function", "function"]
    assert reached == [0.9, 0.7, 0.4]
    assert step_of_state.counts.traces <= 2
    # The state that init gives holds the rate weakly typed; nothing else may make a second program.
    assert {change.cause for one in explain(step_of_state) for change in one.changes} <= {"weak"}


def test_a_method_jitted_once_is_traced_once():
    class Model:
        def apply(self, x):
            return x + 1

    apply = watch(jax.jit(Model().apply))
    for _ in range(4):
        apply(X)
    assert (apply.counts.calls, apply.counts.traces, len(explain(apply))) == (4, 1, 0)


def test_a_counter_that_is_passed_counts_and_none_of_it_is_stale():
    good = watch(jax.jit(lambda count: count + 1))
    count, out = jnp.int32(0), []
    for _ in range(4):
        count = good(count)
        out.append(int(count))
    assert (out, good.counts.traces) == ([1, 2, 3, 4], 1)
    assert not [one for one in stale(good).captured if one.changed]


def test_a_padded_last_batch_needs_one_program():
    data = np.ones((10, 2), np.float32)
    step = watch(jax.jit(lambda x, mask: (x * mask[:, None]).sum() / mask.sum()))
    for start in range(0, 10, 4):
        batch = data[start : start + 4]
        missing = 4 - len(batch)
        mask = np.pad(np.ones(len(batch), np.float32), (0, missing))
        assert float(step(np.pad(batch, ((0, missing), (0, 0))), mask)) == 2.0
    assert (step.counts.calls, step.counts.traces, len(explain(step))) == (3, 1, 0)


def test_restored_weights_placed_like_the_first_ones_compile_once():
    step = watch(jax.jit(lambda x: x + 1))
    place = jax.devices()[0]
    step(jax.device_put(np.zeros(3, np.float32), place))
    step(jax.device_put(np.ones(3, np.float32), place))
    assert (step.counts.traces, step.counts.compiles, len(explain(step))) == (1, 1, 0)


def test_a_tracer_kept_in_a_list_raises_jax_own_error_later_and_stale_shows_where_it_lies():
    kept = []

    @watch
    @jax.jit
    def step(x):
        doubled = x * 2
        kept.append(doubled)
        return doubled.sum()

    step(X)
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jnp.mean(kept[0])
    (found,) = (one for one in stale(step).captured if one.name == "kept")
    assert (found.kind, "Tracer" in found.now) == ("closure", True)
    with pytest.raises(TraceOnceError, match="checking_leaks"):
        holders(kept[0])
    kept.clear()
    step.clear_cache()
    with jax.checking_leaks(), pytest.raises(Exception, match=r"[Ll]eaked"):
        step(X)
