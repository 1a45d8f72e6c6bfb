"""What a block of `with watch()` counts, and what it leaves behind."""

import contextlib
import subprocess
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from traceonce import watch
from traceonce.errors import TraceOnceError


def fresh_step():
    @jax.jit
    def step(x):
        return (x * 2).sum()

    return step


def test_counts_traces_and_compiles_of_a_function_that_nobody_wrapped():
    step = fresh_step()
    with watch() as seen:
        step(np.ones(3, np.float32))
        step(np.ones(3, np.float32))
        step(np.ones(4, np.float32))
    counts = seen["step"]
    assert (counts.traces, counts.lowerings, counts.compiles) == (2, 2, 2)
    assert counts.calls is None
    assert min(counts.trace_seconds, counts.lower_seconds, counts.compile_seconds) > 0


def test_counts_calls_of_a_watched_function_inside_the_block_only():
    step = watch(fresh_step())
    step(np.ones(3, np.float32))
    with watch() as seen:
        step(np.ones(3, np.float32))
        step(np.ones(5, np.float32))
    assert (seen["step"].calls, seen["step"].traces) == (2, 1)
    assert seen[step] == seen["step"]
    assert step.counts.calls == 3


def test_helpers_of_jax_are_shown_only_on_request():
    with watch() as quiet, watch(everything=True) as loud:
        jnp.full((3, 5, 7), 2.5) + 1
    assert list(quiet) == []
    assert len(loud) > 0


def test_a_function_of_yours_called_like_one_of_jax_is_shown():
    @jax.jit
    def add(x):
        return x + 1

    with watch() as seen:
        add(np.ones(3, np.float32))
    assert seen["add"].compiles == 1


def test_two_functions_of_one_name_have_two_rows_and_a_sum():
    first = jax.jit(lambda x: x + 1)
    second = jax.jit(lambda x: x + 2)
    with watch() as seen:
        first(np.ones(3, np.float32))
        second(np.ones(3, np.float32))
        second(np.ones(4, np.float32))
    assert (seen[first].traces, seen[second].traces, seen["<lambda>"].traces) == (1, 2, 3)
    assert "<lambda> (2)" in str(seen)


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_leaving_by_an_exception_removes_every_listener(error, listeners):
    before = listeners()
    during = []

    def interrupted_block():
        with watch() as seen:
            during.append((seen, listeners()))
            raise error

    with pytest.raises(error):
        interrupted_block()
    seen, registered = during[0]
    assert (before, registered) == (0, 3)
    assert listeners() == 0
    assert seen.closed


def test_nested_blocks_both_see_what_happens_in_the_inner_one():
    step = fresh_step()
    with watch() as outer:
        step(np.ones(3, np.float32))
        with watch() as inner:
            step(np.ones(4, np.float32))
        step(np.ones(5, np.float32))
    assert (outer["step"].traces, inner["step"].traces) == (3, 1)


def test_compiles_on_other_threads_are_counted_and_heard_on_the_main_thread():
    step, heard = fresh_step(), []
    with watch() as seen:
        seen.subscribe(lambda event: heard.append((event.kind, threading.current_thread())))
        threads = [threading.Thread(target=step, args=(np.ones(n, np.float32),)) for n in (3, 4, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen["step"].compiles == 3
        assert heard == []
    assert [kind for kind, _ in heard].count("compile") == 3
    assert {thread for _, thread in heard} == {threading.main_thread()}


def test_a_trace_that_raises_counts_and_the_exception_is_the_users_own():
    error = RuntimeError("mine")

    @jax.jit
    def broken(x):
        raise error

    with watch() as seen, pytest.raises(RuntimeError) as caught:
        broken(1.0)
    assert caught.value is error
    assert (seen["broken"].traces, seen["broken"].compiles) == (1, 0)
    assert [event.failed for event in seen.events] == [True]


def test_a_subscriber_that_raises_is_dropped_with_a_warning_and_the_call_succeeds():
    step = watch(fresh_step())

    def bad(event):
        raise ValueError("chart fell over")

    with watch() as seen:
        seen.subscribe(bad)
        with pytest.warns(RuntimeWarning, match="chart fell over"):
            result = step(np.ones(3, np.float32))
        assert float(result) == 6.0
        step(np.ones(3, np.float32))
    assert seen["step"].calls == 2


def test_unsubscribing_ends_the_calls():
    step, heard = watch(fresh_step()), []
    with watch() as seen:
        unsubscribe = seen.subscribe(heard.append)
        step(np.ones(3, np.float32))
        count = len(heard)
        unsubscribe()
        step(np.ones(3, np.float32))
    assert count > 0
    assert len(heard) == count


@pytest.mark.parametrize("error", [None, ValueError])
def test_leaving_the_block_is_told_once_and_after_the_last_event(error):
    step, heard = watch(fresh_step()), []

    def block():
        with watch() as seen:
            seen.subscribe(lambda event: heard.append(event.kind))
            seen.when_closed(lambda: heard.append(f"closed: {seen.closed}"))
            step(np.ones(3, np.float32))
            if error is not None:
                raise error
        return seen

    with contextlib.suppress(ValueError):
        block().when_closed(lambda: heard.append("late"))
    expected = ["trace", "lower", "compile", "call", "closed: True"]
    assert heard == (expected if error else [*expected, "late"])


def test_a_block_closed_on_another_thread_is_told_on_the_main_one():
    told = []

    def block():
        with watch() as seen:
            seen.when_closed(lambda: told.append(threading.current_thread()))

    thread = threading.Thread(target=block)
    thread.start()
    thread.join()
    assert told == []
    with watch():
        fresh_step()(np.ones(3, np.float32))
    assert told == [threading.main_thread()]


def test_a_table_holds_integers_only():
    step = watch(fresh_step())
    with watch() as seen:
        step(np.ones(3, np.float32))
    assert str(seen) == (
        "function  calls  traces  lowerings  compiles  cache hits\n"
        "step          1       1          1         1           0"
    )
    assert repr(seen) == str(seen)
    assert "<table>" in seen._repr_html_()
    assert __file__ not in seen._repr_html_()  # a stored output must not depend on the machine


def test_listeners_that_somebody_else_cleared_are_no_error(listeners):
    step = fresh_step()
    with watch() as seen:
        step(np.ones(3, np.float32))
        jax.monitoring.clear_event_listeners()
        step(np.ones(4, np.float32))
    assert seen["step"].traces <= 2
    with watch() as later:
        step(np.ones(5, np.float32))
    assert later["step"].traces == 1
    assert listeners() == 0


def test_an_old_jax_is_told_from_a_defect(monkeypatch):
    monkeypatch.delattr(jax.monitoring, "unregister_scalar_listener")
    with pytest.raises(TraceOnceError, match="pip install --upgrade jax"), watch():
        pass


def test_events_inside_a_callback_are_heard_too_and_once():
    step, other, heard = watch(fresh_step()), fresh_step(), []

    def compiles_something(event):
        heard.append((event.kind, event.name))
        if event.kind == "call" and len(heard) < 20:
            other(np.ones(7, np.float32))

    with watch() as seen:
        seen.subscribe(compiles_something)
        step(np.ones(3, np.float32))
    assert heard.count(("call", "step")) == 1
    assert heard.count(("compile", "step")) == seen["step"].compiles == 2


def test_a_persistent_cache_hit_is_counted_beside_its_compile(tmp_path):
    program = """
import sys, jax, numpy as np
from traceonce import watch
jax.config.update("jax_compilation_cache_dir", sys.argv[1])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
step = jax.jit(lambda x: x * 2)
with watch() as seen:
    step(np.ones(3, np.float32))
print(seen["<lambda>"].compiles, seen["<lambda>"].cache_hits)
"""
    command = [sys.executable, "-c", program, str(tmp_path)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout for _ in range(2)]
    assert [one.split() for one in runs] == [["1", "0"], ["1", "1"]]


def test_importing_the_package_changes_no_configuration_and_starts_no_backend():
    program = """
import jax
before = dict(jax.config.values)
import traceonce.observe
from jax._src import xla_bridge
print(dict(jax.config.values) == before, xla_bridge.backends_are_initialized())
import sys
print([name for name in ("IPython", "ipywidgets", "nbgrader", "pytest") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert ran.stdout.split("\n")[:2] == ["True False", "[]"]


def test_a_record_cannot_be_opened_twice():
    with watch() as seen:
        pass
    with pytest.raises(TraceOnceError, match="open a new one"), seen:
        pass
