"""What the observer costs, measured against its budgets, interleaved in one process.

Run it with `python benchmarks/observe.py`. Each line gives the figure, the budget and their ratio; a ratio above 1 makes
the exit code 1. Figures are CPU time of the measuring thread, so that what else runs on the machine counts as little as
possible; those of calls are medians over rounds that alternate between the bare and the watched side, and the ratio of
the two is printed beside the difference, as is the difference in the fastest rounds. A compile empties the processor's
caches, so that a listener which does nothing has a price as well: it is printed beside that of the observer.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import monitoring

from traceonce import explain, watch
from traceonce.observe import rss
from traceonce.observe.monitor import STAGES, Monitor

ROUNDS = 60
CALLS = 1000


def per_call(function: Callable[[], Any], calls: int = CALLS) -> float:
    """Return seconds a call, over `calls` calls in a row."""
    start = time.thread_time()
    for _ in range(calls):
        function()
    return (time.thread_time() - start) / calls


def interleaved(bare: Callable[[], Any], watched: Callable[[], Any]) -> tuple[float, float, float]:
    """Return seconds for a bare call, what watching adds, and what it adds in the fastest rounds.

    The first two are medians over rounds that alternate; the third is the difference of the two minima.
    """
    pairs = [(per_call(bare), per_call(watched)) for _ in range(ROUNDS)]
    fastest = min(w for _, w in pairs) - min(b for b, _ in pairs)
    return statistics.median(b for b, _ in pairs), statistics.median(w - b for b, w in pairs), fastest


def report(what: str, figure: float, budget: float, unit: str, note: str = "") -> bool:
    """Print one line and tell whether the figure is within its budget."""
    ratio = figure / budget
    print(f"{what:<44} {figure:9.2f} {unit:<3} of {budget:>8g} {unit:<3} ratio {ratio:5.2f}  {note}".rstrip())
    return ratio <= 1


def steady_call() -> bool:
    """A call that compiles nothing, bare and watched, without and within a block."""
    x = jnp.ones(3)
    step = jax.jit(lambda x: x + 1)
    watched = watch(step)
    watched(x)
    fine = True
    for what, block in (("a steady call: added", nullcontext()), ("a steady call within a block: added", watch())):
        with block:
            bare, extra, fastest = interleaved(lambda: step(x), lambda: watched(x))
        note = f"bare {bare * 1e6:.2f} us, {1 + extra / bare:.2f} of it; {fastest * 1e6:.2f} us in the fastest rounds"
        fine = report(what, extra * 1e6, 5, "us", note) and fine
    return fine


def compiles(first: int, count: int) -> None:
    """Compile a step with five leaves for `count` shapes, beginning with `first`."""
    params = {"w": jnp.ones((3, 3)), "b": jnp.ones(3), "scale": jnp.float32(1)}

    def train(params: Any, x: Any, lr: float) -> Any:
        return jax.tree.map(lambda p: p * lr, params), x

    train_step = jax.jit(train)
    for n in range(first, first + count):
        train_step(params, np.ones(n, np.float32), 0.1)


def timed_into(spent: list[float], real: Callable[..., None]) -> Callable[..., None]:
    """Wrap a listener (the event is its last positional argument but one) and keep its time for each stage."""

    def listener(*args: Any, **about: Any) -> None:
        start = time.thread_time()
        real(*args, **about)
        if args[-2] in STAGES:
            spent.append(time.thread_time() - start)

    return listener


def nothing(*_: Any, **__: Any) -> None:
    """A listener that does nothing."""


def compile_event() -> bool:
    """The listeners' own time for each trace, lowering and compile, and that of listeners that do nothing."""
    empty: list[float] = []
    start, end = timed_into(empty, nothing), timed_into(empty, nothing)
    monitoring.register_scalar_listener(start)
    monitoring.register_event_duration_secs_listener(end)
    try:
        compiles(1, 41)
    finally:
        monitoring.unregister_scalar_listener(start)
        monitoring.unregister_event_duration_listener(end)
    spent: list[float] = []
    real_start, real_end = Monitor._on_start, Monitor._on_end
    began = time.thread_time()
    try:
        Monitor._on_start = timed_into(spent, real_start)  # type: ignore[method-assign]
        Monitor._on_end = timed_into(spent, real_end)  # type: ignore[method-assign]
        with watch() as seen:
            compiles(101, 40)
    finally:
        Monitor._on_start, Monitor._on_end = real_start, real_end  # type: ignore[method-assign]
    whole = time.thread_time() - began
    assert seen["train"].compiles == 40
    each, floor = (sum(times) / (len(times) / 2) for times in (spent, empty))
    note = f"an empty listener {floor * 1e6:.0f} us; {100 * sum(spent) / whole:.2f} % of the compiles' time"
    return report("a compile event: listeners' own time", each * 1e6, 50, "us", note)


def explanation() -> bool:
    """`explain` of one changed leaf among 1000."""
    tree = {f"layer{i}": np.ones(2, np.float32) for i in range(1000)}
    step = watch(jax.jit(lambda tree: tree["layer0"]))
    step(tree)
    step({**tree, "layer500": np.ones(3, np.float32)})
    (found,) = explain(step)
    assert [(c.cause, c.path) for c in found.changes] == [("shape", "tree['layer500']")]
    figure = statistics.median(per_call(lambda: explain(step), 20) for _ in range(20))
    return report("explain, tree of 1000 leaves", figure * 1e3, 1, "ms")


def many_events() -> bool:
    """100 000 compile events and as many watched calls: every one must be in the counts."""
    number = 100_000
    event, about = "/jax/core/compile/backend_compile_duration", {"fun_name": "jit(synthetic)"}
    with watch(everything=True) as seen:
        start = time.thread_time()
        for _ in range(number):
            monitoring.record_scalar(event, 0.0, **about)
            monitoring.record_event_duration_secs(event, 1e-6, **about)
        compiles = time.thread_time() - start
    assert seen["synthetic"].compiles == number
    step = watch(lambda: None)
    heard: list[Any] = []
    with watch() as calls:
        calls.subscribe(heard.append)
        start = time.thread_time()
        for _ in range(number):
            step()
        called = time.thread_time() - start
    assert calls[step].calls == len(heard) == number
    fine = report("100 000 calls, each heard by a subscriber", called, 1, "s", "none lost")
    return report("100 000 compile events", compiles, 1, "s", "none lost") and fine


def sampling() -> bool:
    """The share of one core that sampling RSS at 10 Hz takes."""
    rss()
    start = time.thread_time()
    for _ in range(200):
        rss()
    each = (time.thread_time() - start) / 200
    return report("RSS at 10 Hz: share of a core", 100 * each * 10, 1, "%")


def main() -> int:
    """Run every measurement; 1 where a budget is not kept."""
    print(f"JAX {jax.__version__} on {jax.default_backend()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
    kept = [measure() for measure in (steady_call, compile_event, explanation, many_events, sampling)]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
