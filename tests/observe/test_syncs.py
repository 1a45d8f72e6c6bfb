"""Host syncs: what is counted, where it is said to be, and that nothing is left behind."""

import gc
import math
import pickle
import threading
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from traceonce import syncs
from traceonce.errors import TraceOnceError
from traceonce.observe import evidence

ARRAY = jnp.arange(3.0)
SCALAR = jnp.float32(0.5)
WHOLE = jnp.int32(2)

READS = {
    "float": (lambda: float(SCALAR), "float()"),
    "math": (lambda: math.sqrt(SCALAR), "float()"),
    "int": (lambda: int(WHOLE), "int()"),
    "index": (lambda: [1, 2, 3][WHOLE], "as an index"),
    "range": (lambda: list(range(WHOLE)), "as an index"),
    "if": (lambda: 1 if SCALAR < 1 else 0, "bool() or if"),
    "item": (lambda: SCALAR.item(), ".item()"),
    "tolist": (lambda: ARRAY.tolist(), ".tolist()"),
    "repr": (lambda: repr(ARRAY), "print"),
    "str": (lambda: str(ARRAY), "print"),
    "f-string": (lambda: f"{SCALAR:.3f}", "print"),
    "asarray": (lambda: np.asarray(ARRAY), "NumPy"),
    "array": (lambda: np.array(ARRAY), "NumPy"),
    "ufunc": (lambda: np.add(ARRAY, 1), "NumPy"),
    "pickle": (lambda: pickle.dumps(ARRAY), "pickle"),
    "device_get": (lambda: jax.device_get(ARRAY), "device_get"),
}


@pytest.mark.parametrize("name", READS)
def test_each_way_to_read_a_value_is_one_read(name):
    read, how = READS[name]
    with syncs() as seen:
        read()
    (only,) = seen
    assert (only.kind, only.how, only.arrays) == ("read", how, 1)
    assert only.place == f"test_syncs.py:{read.__code__.co_firstlineno}"
    assert (seen.reads, seen.waits) == (1, 0)


def test_what_stays_on_the_device_is_no_sync():
    with syncs() as seen:
        doubled = jax.jit(lambda x: x * 2)(ARRAY)
        for row in doubled + jnp.sum(ARRAY[1:]):
            row + 1
        jax.device_put(np.ones(3))
        repr(doubled.shape)
    assert not len(seen)


def test_a_tree_fetched_or_awaited_whole_is_one_sync():
    with syncs() as seen:
        jax.device_get({"a": ARRAY, "b": [SCALAR, SCALAR]})
        jax.block_until_ready({"a": ARRAY, "b": SCALAR})
        ARRAY.block_until_ready()
    assert [(one.kind, one.arrays, one.bytes) for one in seen] == [("read", 3, 20), ("wait", 2, 16), ("wait", 1, 12)]


def test_a_loop_that_reads_each_loss_against_one_that_fetches_once():
    losses = [SCALAR + n for n in range(5)]
    with syncs() as each:
        for loss in losses:
            float(loss)
    with syncs() as once:
        np.asarray(jnp.stack(losses))
    assert (each.reads, once.reads) == (5, 1)


def test_a_read_in_a_library_is_placed_there_and_not_in_numpy_or_jax():
    with syncs() as seen:
        np.testing.assert_allclose(ARRAY, ARRAY)
    assert {one.place.partition(":")[0] for one in seen} == {"test_syncs.py"}


def test_what_jax_reads_for_a_print_inside_jit_is_not_counted(capfd):
    @jax.jit
    def loud(x):
        jax.debug.print("{}", x)
        return x

    with syncs() as seen:
        loud(ARRAY)
        jax.effects_barrier()
    assert not len(seen)


def test_constants_that_a_compile_takes_off_the_device_are_not_counted():
    captured = jnp.arange(5.0)
    with syncs() as seen:
        jax.jit(lambda x: x + captured)(jnp.ones(5))
    assert not len(seen)


def test_other_threads_count_under_their_own_number():
    with syncs() as seen:
        thread = threading.Thread(target=lambda: float(SCALAR))
        thread.start()
        thread.join()
        float(SCALAR)
    assert {one.thread for one in seen} == {thread.ident, threading.get_ident()}


def test_blocks_in_blocks_each_count_what_happens_in_them():
    with syncs() as outer:
        float(SCALAR)
        with syncs() as inner:
            float(SCALAR)
        float(SCALAR)
    assert (outer.reads, inner.reads) == (3, 1)


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_the_methods_are_put_back(error):
    kind = evidence.array_type()
    before = {name: vars(kind)[name] for name in ("_value", "__buffer__", "block_until_ready")}
    try:
        with syncs():
            assert vars(kind)["_value"] is not before["_value"]
            if error:
                raise error
    except (ValueError, KeyboardInterrupt):
        pass
    assert {name: vars(kind)[name] for name in before} == before
    assert np.asarray(ARRAY).tolist() == [0, 1, 2]


def test_an_array_that_was_read_can_go():
    array = jnp.arange(7.0) + 1
    gone = weakref.ref(array)
    with syncs():
        np.asarray(array)
        jax.device_get({"a": array})
        float(array[0])
    del array
    gc.collect()
    assert gone() is None


def test_an_error_of_the_users_is_untouched():
    deleted = jnp.arange(3.0) + 1
    deleted.delete()
    with syncs() as seen, pytest.raises(RuntimeError, match="deleted"):
        float(deleted[0])
    with syncs() as seen, pytest.raises(TypeError, match="scalar"):
        float(ARRAY)
    assert not len(seen)


def test_the_table_names_the_worst_place_first():
    with syncs() as seen:
        print(f"{SCALAR}", end="")
        for _ in range(4):
            float(SCALAR)
    lines = str(seen).splitlines()
    assert lines[0].split() == ["place", "by", "times", "arrays", "bytes"]
    assert lines[1].split()[1:] == ["float()", "4", "4", "16"]
    assert len(lines) == 3
    assert seen._repr_html_().count("<tr>") == 3
    assert str(syncs()) == "Python waited for the device nowhere"


def test_a_jax_that_reads_in_another_way_is_refused(monkeypatch):
    monkeypatch.setattr(evidence, "reading_methods", lambda: None)
    with pytest.raises(TraceOnceError, match="its counts would be wrong"), syncs():
        pass


def test_a_record_is_for_one_block():
    record = syncs()
    with record:
        pass
    with pytest.raises(TraceOnceError, match=r"open a new one with syncs\(\)"), record:
        pass
