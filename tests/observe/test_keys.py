"""Uses of random keys: each is seen once, whatever stands around it, and the draws stay the same."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceonce import key_uses
from traceonce.errors import TraceOnceError
from traceonce.observe import KeyUse

KEY = jax.random.key(7)
ROOT = (0, 7)


def words(key):
    return tuple(jax.random.key_data(key).tolist())


def draws_of(function, *args):
    with key_uses() as seen:
        function(seen.watch(KEY), *args)
    return seen


def two_of_one_parent(key):
    return jax.random.normal(key), jax.random.split(key)


CLEAN = {
    "one draw": lambda key: jax.random.normal(key, (3,)),
    "children": lambda key: [jax.random.normal(child) for child in jax.random.split(key, 3)],
    "vmap": lambda key: jax.vmap(lambda k: jax.random.uniform(k, (2,)))(jax.random.split(key, 4)),
    "folds": lambda key: [jax.random.normal(jax.random.fold_in(key, n)) for n in range(3)],
    "jit": jax.jit(lambda key: jax.random.normal(jax.random.fold_in(key, 1))),
    "grad": lambda key: jax.grad(lambda x: x * jax.random.normal(key))(1.0),
    "scan": lambda key: jax.lax.scan(
        lambda k, _: (jax.random.fold_in(k, 1), jax.random.normal(jax.random.fold_in(k, 0))), key, None, length=3
    ),
    "permutation": lambda key: jax.random.permutation(key, 5),
    "raw data": lambda key: jax.random.fold_in(key, jnp.uint32(3)),
}
REUSED = {
    "two draws": lambda key: (jax.random.normal(key), jax.random.uniform(key)),
    "draw and split": two_of_one_parent,
    "split twice": lambda key: (jax.random.split(key), jax.random.split(key, 3)),
    "same fold": lambda key: (jax.random.fold_in(key, 3), jax.random.fold_in(key, 3)),
    "in jit": jax.jit(two_of_one_parent),
    "one key for all rows": lambda key: (
        jax.vmap(lambda x: x * jax.random.normal(key))(jnp.ones(3)) + jax.random.normal(key)
    ),
    "closed over by a scan": lambda key: jax.lax.scan(lambda c, _: (c, jax.random.normal(key)), 0, None, length=3),
}


@pytest.mark.parametrize("name", CLEAN)
def test_keys_that_are_used_once_are_not_reused(name):
    seen = draws_of(CLEAN[name])
    assert seen.uses
    assert not seen.reused


@pytest.mark.parametrize("name", REUSED)
def test_a_key_that_is_used_twice_is_named(name):
    assert set(draws_of(REUSED[name]).reused) == {ROOT}


def test_each_example_of_a_vmap_counts_under_its_own_key():
    children = jax.random.split(KEY, 4)
    seen = draws_of(CLEAN["vmap"])
    assert seen.draws == {words(child): 1 for child in children}
    assert seen.uses[KeyUse("split", ROOT)] == 1


def test_a_compiled_function_counts_at_each_call():
    step = jax.jit(lambda key: jax.random.normal(key))
    with key_uses() as seen:
        for _ in range(3):
            step(seen.watch(KEY))
    assert seen.reused == {ROOT: 3}
    assert step._cache_size() == 1


def test_what_happens_outside_of_the_block_is_not_counted():
    with key_uses() as seen:
        watched = seen.watch(KEY)
        jax.random.normal(watched)
    jax.random.uniform(watched)
    assert seen.uses == {KeyUse("draw", ROOT): 1}


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), number=st.integers(0, 2**31 - 1))
def test_watched_keys_draw_and_derive_the_same(seed, number):
    plain = jax.random.key(seed)
    with key_uses() as seen:
        watched = seen.watch(plain)
        pairs = [
            (jax.random.normal(key), jax.random.key_data(jax.random.split(key)), words(jax.random.fold_in(key, number)))
            for key in (plain, watched)
        ]
    for one, other in zip(*pairs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_raw_keys_become_watched_ones():
    with key_uses() as seen:
        jax.random.normal(seen.watch(jax.random.PRNGKey(7)))
    assert seen.uses == {KeyUse("draw", ROOT): 1}


@pytest.mark.parametrize("no_key", [3, np.zeros(2, np.uint32), jnp.zeros(3, jnp.uint32), "key"])
def test_what_is_no_key_is_refused(no_key):
    with pytest.raises(TraceOnceError, match="takes a random key"):
        key_uses().watch(no_key)


def test_other_implementations_are_refused():
    with pytest.raises(TraceOnceError, match="this one is rbg"):
        key_uses().watch(jax.random.key(1, impl="rbg"))


def test_an_error_leaves_no_record_open():
    with pytest.raises(ZeroDivisionError), key_uses() as seen:
        raise ZeroDivisionError
    jax.random.normal(seen.watch(KEY))
    assert not seen.uses
    assert str(seen) == "no watched key was used"
    with pytest.raises(TraceOnceError, match="already used"), seen:
        pass
