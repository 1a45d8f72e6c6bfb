"""What `watch(fn)` returns: behaves like the function, and keeps a record."""

import functools
import gc
import threading

import equinox as eqx
import jax
import numpy as np
import pytest

from traceonce import watch
from traceonce.errors import TraceOnceError

X3, X4 = np.ones(3, np.float32), np.ones(4, np.float32)


def test_behaves_like_the_jitted_function():
    @watch
    @jax.jit
    def step(x):
        """Add up."""
        return x.sum()

    assert (step.__name__, step.__doc__) == ("step", "Add up.")
    assert float(step(X3)) == 3.0
    assert float(step(x=X3)) == 3.0
    assert "stablehlo" in step.lower(X3).as_text()
    assert step.trace(X3).jaxpr is not None
    assert step.counts.calls == 2
    step.clear_cache()
    step(X3)
    assert step.counts.compiles == 3  # positional, by keyword, and again after the cache was cleared


def test_works_as_a_method_of_each_instance():
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @watch
        @functools.partial(jax.jit, static_argnums=0)
        def apply(self, x):
            return x * self.scale

    two, three = Model(2.0), Model(3.0)
    assert [float(model.apply(X3)[0]) for model in (two, three, two)] == [2.0, 3.0, 2.0]
    assert (Model.apply.counts.calls, Model.apply.counts.traces) == (3, 2)


@pytest.mark.parametrize("wrap", [jax.jit, eqx.filter_jit])
def test_counts_for_either_jit(wrap):
    @wrap
    def step(x):
        return x * 2

    step = watch(step)
    for x in (X3, X3, X4):
        step(x)
    assert (step.counts.calls, step.counts.traces, step.counts.compiles) == (3, 2, 2)


class Doubler:
    def __call__(self, x):
        return x * 2

    def method(self, x):
        return x * 2


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (functools.partial(lambda scale, x: x * scale, 2.0), "<lambda>"),
        (Doubler().method, "method"),
        (Doubler(), "Doubler"),
        (jax.vmap(lambda x: x * 2), "<lambda>"),
    ],
    ids=["partial", "bound method", "callable object", "vmap of a lambda"],
)
def test_counts_whatever_kind_of_callable_is_jitted(function, name):
    step = watch(jax.jit(function))
    step(X3)
    step(X4)
    assert step.key.name == name
    assert (step.counts.calls, step.counts.traces, step.counts.compiles) == (2, 2, 2)


def test_a_plain_function_is_recorded_with_what_compiles_inside_it():
    @jax.jit
    def inner(x):
        return x * 2

    @watch
    def train(n):
        for size in range(1, n + 1):
            inner(np.ones(size, np.float32))

    train(3)
    assert (train.counts.calls, train.counts.traces) == (1, 0)
    assert train.seen["inner"].compiles == 3
    assert [event.compiles for event in train.seen.events if event.kind == "call"] == [3]


def test_a_watched_function_inside_another_is_in_both_records():
    inner = watch(jax.jit(lambda x: x * 2))

    @watch
    def outer(x):
        return inner(inner(x))

    outer(X3)
    inner(X3)
    assert (outer.seen[inner].calls, inner.counts.calls) == (2, 3)
    calls = [(e.name, e.compiles) for e in outer.seen.events if e.kind == "call"]
    assert calls == [("<lambda>", 1), ("<lambda>", 0), ("outer", 1)]


def test_an_exception_of_the_user_passes_untouched_and_the_call_counts_as_failed():
    error = ValueError("mine")

    @watch
    @jax.jit
    def broken(x):
        raise error

    with pytest.raises(ValueError, match="mine") as caught:
        broken(X3)
    assert caught.value is error
    call = broken.seen.events[-1]
    assert (call.kind, call.failed, call.traces, call.compiles) == ("call", True, 1, 0)


def test_an_interrupt_leaves_no_call_open():
    @watch
    def stopped():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    step = watch(jax.jit(lambda x: x + 1))
    step(X3)
    assert stopped.seen[step].compiles == 0
    assert step.counts.compiles == 1


def test_listeners_go_with_the_last_watched_function(listeners):
    before = listeners()
    step = watch(jax.jit(lambda x: x + 1))
    step(X3)
    assert before == 0
    assert listeners() == 3
    del step
    gc.collect()
    assert listeners() == before


def test_counts_stay_right_beyond_the_events_that_are_kept():
    from traceonce.observe import calls

    step = watch(lambda: None)
    with watch() as seen:
        for _ in range(calls.KEPT_CALLS + 500):
            step()
    assert seen[step].calls == calls.KEPT_CALLS + 500
    assert (len(seen.events), seen.dropped) == (calls.KEPT_CALLS, 500)


def test_calls_keep_their_numbers_when_the_oldest_are_thrown_away(monkeypatch):
    from traceonce.observe import calls, wrapping

    monkeypatch.setattr(calls, "KEPT_CALLS", 10)
    monkeypatch.setattr(calls, "TRIMMED_CALLS", 5)
    monkeypatch.setattr(wrapping, "FULL", 15)
    step = watch(jax.jit(lambda x: x + 1))
    for _ in range(7):
        step(X3)
    with watch() as seen:
        for size in (*[3] * 90, 4):
            step(np.ones(size, np.float32))
        assert [event.call for event in seen.events if event.kind == "call"] == list(range(89, 99))
    assert len(step._entries) <= 16
    assert (seen[step].calls, step.counts.calls) == (91, 98)
    events = [event for event in seen.events if event.kind == "call"]
    assert [event.call for event in events] == list(range(89, 99))
    assert [event.compiles for event in events] == [0] * 9 + [1]


def test_a_watched_function_of_jax_counts_as_ones_own():
    sine = watch(jax.jit(jax.numpy.sin))
    sine(X3)
    assert (sine.counts.calls, sine.counts.compiles) == (1, 1)
    assert [key.name for key in sine.seen] == ["sin"]


def test_the_leak_checker_sees_the_users_leaks_and_none_of_the_observer():
    kept = []

    @watch
    @jax.jit
    def dirty(x):
        kept.append(x)
        return x * 2

    @watch
    @jax.jit
    def clean(x):
        return x * 2

    with watch() as seen, jax.checking_leaks():
        clean(X3)
        with pytest.raises(Exception, match=r"[Ll]eaked"):
            dirty(X3)
    assert seen[clean].compiles == 1
    kept.clear()


def test_arguments_are_not_kept_alive():
    @watch
    @functools.partial(jax.jit, static_argnums=1)
    def step(tree, mode):
        return tree["x"] * 2

    array = jax.device_put(np.ones(1234, np.float32))
    pointer = array.unsafe_buffer_pointer()
    with watch() as seen:
        step({"x": array}, "a")
        step({"x": array}, "b")
    del array
    gc.collect()
    assert pointer not in [one.unsafe_buffer_pointer() for one in jax.live_arrays() if one.shape == (1234,)]
    assert seen[step].compiles == 2


def test_several_threads_lose_no_call():
    step = watch(jax.jit(lambda x: x + 1))
    step(X3)
    with watch() as seen:
        threads = [threading.Thread(target=lambda: [step(X3) for _ in range(500)]) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert seen[step].calls == 2000
    assert len({event.thread for event in seen.events}) == 4


def test_watching_twice_gives_the_same_function():
    step = watch(lambda: None)
    assert watch(step) is step


def test_something_that_cannot_be_called_is_refused_in_a_sentence():
    with pytest.raises(TraceOnceError, match="with watch"):
        watch(3)
