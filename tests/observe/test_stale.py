"""What `stale` says of a program that kept an old value."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from traceonce import stale, watch
from traceonce.errors import TraceOnceError

X = np.ones(2, np.float32)
EPSILON = 1e-6
config = types.ModuleType("config_of_this_test")


def guarded(x):
    return x + EPSILON


def changed(function):
    return [(one.name, one.then, one.now) for one in stale(function).changed]


def test_a_closed_over_number_that_changed_is_named_with_both_values():
    scale = 10.0

    def loss(x):
        return (x**2).sum() * scale

    step = watch(jax.jit(jax.grad(loss)))
    step(X)
    assert changed(step) == []
    scale = 20.0
    assert float(step(X)[0]) == 20.0  # 2 * x * 10: the old scale
    assert float(jax.grad(loss)(X)[0]) == 40.0
    assert changed(step) == [("scale", "10.0", "20.0")]


def test_a_constant_read_by_a_helper_is_found_through_the_helper(monkeypatch):
    step = watch(jax.jit(lambda x: guarded(x) * 2))
    step(X)
    monkeypatch.setitem(globals(), "EPSILON", 1e-5)
    assert changed(step) == [("guarded -> EPSILON", "1e-06", "1e-05")]
    step.clear_cache()
    step(X)
    assert changed(step) == []


def test_an_attribute_of_a_module_is_followed():
    config.rate = 0.1
    step = watch(jax.jit(lambda x: x * config.rate))
    step(X)
    config.rate = 0.5
    assert changed(step) == [("config.rate", "0.1", "0.5")]


def test_a_static_self_that_was_mutated_is_named_by_attribute():
    class Model:
        def __init__(self, a):
            self.a = a

        @watch
        @functools.partial(jax.jit, static_argnums=0)
        def add(self):
            return self.a + 1

    model = Model(1)
    model.add()
    model.a = 2
    assert int(model.add()) == 2  # stale: 1 + 1
    assert changed(Model.add) == [("self.a", "1", "2")]


def test_a_body_edited_in_place_is_found():
    def loss(x):
        return x * 1.0

    def edited(x):
        return x * 10.0

    step = watch(jax.jit(loss))
    step(2.0)
    loss.__code__ = edited.__code__
    assert (float(step(2.0)), float(loss(2.0))) == (2.0, 20.0)
    (one,) = stale(step).changed
    assert one.kind == "code"


@pytest.mark.parametrize(
    ("table", "edit"),
    [
        ({"a": [1, 2]}, lambda table: table["a"].append(3)),
        (np.ones(3), lambda array: array.__setitem__(0, 5.0)),
    ],
    ids=["list in a dict", "host array"],
)
def test_a_mutation_in_place_is_found(table, edit):
    step = watch(jax.jit(lambda x: x * np.sum(table["a"] if isinstance(table, dict) else table)))
    step(X)
    assert changed(step) == []
    edit(table)
    assert [one.name for one in stale(step).changed] == ["table"]


def test_a_counter_in_a_global_counts_traces_and_is_not_called_stale_for_it():
    count = 0

    @watch
    @jax.jit
    def bad():
        nonlocal count
        count += 1
        return jnp.int32(count)

    assert [int(bad()) for _ in range(4)] == [1, 1, 1, 1]
    assert (count, bad.counts.traces, changed(bad)) == (1, 1, [])


def test_a_function_that_was_not_watched_has_values_and_no_verdict():
    scale = 3

    @jax.jit
    def step(x):
        return x * scale

    step(X)
    found = stale(step)
    assert [(one.name, one.changed) for one in found.captured] == [("step", None), ("scale", None)]
    assert "cannot be told" in str(found)


def test_a_default_and_a_partial_argument_are_listed():
    def step(scale, x, offset=4):
        return x * scale + offset

    names = [one.name for one in stale(functools.partial(step, 2.0)).captured]
    assert names == ["partial argument 0", "step", "offset"]


def test_a_builtin_is_refused_in_a_sentence():
    with pytest.raises(TraceOnceError, match="has none"):
        stale(len)
