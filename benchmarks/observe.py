"""What the observer costs, measured against its budgets, interleaved in one process.

Run it with `python benchmarks/observe.py`. Each line gives the figure, the budget and their ratio; a ratio above 1 makes
the exit code 1. Figures are CPU time of the measuring thread, so that what else runs on the machine counts as little as
possible; those of calls are medians over rounds that alternate between the bare and the watched side, and the ratio of
the two is printed beside the difference.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
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


def interleaved(bare: Callable[[], Any], watched: Callable[[], Any]) -> tuple[float, float]:
    """Return seconds for one bare call and for one watched call: medians of rounds that alternate."""
    pairs = [(per_call(bare), per_call(watched)) for _ in range(ROUNDS)]
    return statistics.median(b for b, _ in pairs), statistics.median(w - b for b, w in pairs)


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
    bare, extra = interleaved(lambda: step(x), lambda: watched(x))
    fine = report(
        "a steady call: added", extra * 1e6, 5, "us", f"bare {bare * 1e6:.2f} us, {1 + extra / bare:.2f} of it"
    )
    with watch():
        bare, extra = interleaved(lambda: step(x), lambda: watched(x))
    return (
        report("a steady call within a block: added", extra * 1e6, 5, "us", f"{1 + extra / bare:.2f} of bare") and fine
    )


def compile_event() -> bool:
    """The listeners' own time for each trace, lowering and compile of a step with five leaves."""
    spent: list[float] = []
    real_start, real_end = Monitor._on_start, Monitor._on_end

    def timed(real: Callable[..., None]) -> Callable[..., None]:
        def listener(self: Monitor, event: str, value: float, **about: Any) -> None:
            start = time.thread_time()
            real(self, event, value, **about)
            if event in STAGES:
                spent.append(time.thread_time() - start)

        return listener

    params = {"w": jnp.ones((3, 3)), "b": jnp.ones(3), "scale": jnp.float32(1)}

    def train(params: Any, x: Any, lr: float) -> Any:
        return jax.tree.map(lambda p: p * lr, params), x

    train_step = jax.jit(train)
    began = time.thread_time()
    try:
        Monitor._on_start, Monitor._on_end = timed(real_start), timed(real_end)  # type: ignore[method-assign, assignment]
        with watch() as seen:
            for n in range(1, 41):
                train_step(params, np.ones(n, np.float32), 0.1)
    finally:
        Monitor._on_start, Monitor._on_end = real_start, real_end  # type: ignore[method-assign]
    whole = time.thread_time() - began
    each = sum(spent) / (len(spent) / 2)
    return report(
        "a compile event: listeners' own time",
        each * 1e6,
        50,
        "us",
        f"{len(seen.events)} events, {100 * sum(spent) / whole:.2f} % of the compiles' time",
    )


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
