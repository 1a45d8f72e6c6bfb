"""A random change of a random argument is explained by the changed path, and by nothing else."""

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from traceonce import explain, watch
from traceonce.observe.difference import changes, distance
from traceonce.observe.evidence import entry_of_call
from traceonce.observe.signature import signature_of

DTYPES = ("float32", "int32", "bool")


def arrays():
    shapes = st.lists(st.integers(1, 3), max_size=2).map(tuple)
    return st.builds(lambda shape, dtype: jnp.zeros(shape, dtype), shapes, st.sampled_from(DTYPES))


def trees():
    names = st.sampled_from(["w", "b", "k", "scale"])
    return st.recursive(
        arrays(),
        lambda inner: st.one_of(
            st.dictionaries(names, inner, min_size=1, max_size=3),
            st.lists(inner, min_size=1, max_size=3),
            st.lists(inner, min_size=1, max_size=3).map(tuple),
        ),
        max_leaves=8,
    )


def reshaped(leaf):
    return jnp.zeros((*leaf.shape, 4), leaf.dtype)


def retyped(leaf):
    return leaf.astype("int32" if leaf.dtype != jnp.int32 else "float32")


def committed(leaf):
    return jax.device_put(leaf, jax.devices()[0])


EDITS = {"shape": reshaped, "dtype": retyped, "committed": committed, "leaf": lambda leaf: None}


def signature(function, *args):
    return signature_of(entry_of_call(function, args, {}))


def edited(tree, index, edit):
    """Return the tree with its leaf number `index` replaced, and the path of that leaf."""
    paths, structure = jax.tree_util.tree_flatten_with_path(tree)
    leaves = [edit(leaf) if i == index else leaf for i, (_, leaf) in enumerate(paths)]
    return jax.tree.unflatten(structure, leaves), jax.tree_util.keystr(paths[index][0])


@settings(max_examples=100, deadline=None)
@given(tree=trees(), cause=st.sampled_from(sorted(EDITS)), data=st.data())
def test_one_edited_leaf_gives_one_change_at_its_path(tree, cause, data):
    step = jax.jit(lambda params, x: x)
    index = data.draw(st.integers(0, len(jax.tree.leaves(tree)) - 1))
    other, path = edited(tree, index, EDITS[cause])
    before, after = signature(step, tree, 1.0), signature(step, other, 1.0)
    assert [(change.cause, change.path) for change in changes(before, after)] == [(cause, f"params{path}")]
    assert distance(before, after) > 0


@settings(max_examples=50, deadline=None)
@given(tree=trees())
def test_equal_arguments_give_no_change(tree):
    step = jax.jit(lambda params: params)
    copy = jax.tree.map(lambda leaf: jnp.array(leaf), tree)
    before, after = signature(step, tree), signature(step, copy)
    assert changes(before, after) == ()
    assert distance(before, after) == 0


@settings(max_examples=100, deadline=None)
@given(tree=st.dictionaries(st.sampled_from(["w", "b", "k"]), trees(), min_size=1), extra=trees())
def test_an_added_entry_is_the_only_change(tree, extra):
    step = jax.jit(lambda params: params)
    (change,) = changes(signature(step, tree), signature(step, {**tree, "added": extra}))
    assert (change.cause, change.path, change.old) == ("leaf", "params['added']", "absent")


@settings(max_examples=6, deadline=None)
@given(tree=trees(), cause=st.sampled_from(sorted(EDITS)), data=st.data())
def test_what_jax_really_compiles_again_is_explained_the_same_way(tree, cause, data):
    index = data.draw(st.integers(0, len(jax.tree.leaves(tree)) - 1))
    other, path = edited(tree, index, EDITS[cause])

    @watch
    @jax.jit
    def step(params):
        return jax.tree.map(lambda leaf: leaf, params), np.float32(1)

    step(tree)
    step(tree)
    step(other)
    assert step.counts.compiles == 2
    (found,) = explain(step)
    assert found.doubt == ""
    assert [(change.cause, change.path) for change in found.changes] == [(cause, f"params{path}")]
    assert found.step == ("recompile" if cause == "committed" else "retrace")
