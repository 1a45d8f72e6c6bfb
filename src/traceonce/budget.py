"""A budget of traces, compiles and planned bytes for one stretch of code: what `traceonce.pytest_plugin` enforces."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from traceonce.errors import UsageError
from traceonce.observe import Event, FunctionKey
from traceonce.observe.explaining import explanation
from traceonce.observe.history import Compilation
from traceonce.observe.memory import written
from traceonce.observe.planning import HIDING_OPTION
from traceonce.run.stages import StageWatch

_KINDS = ("traces", "compiles", "planned_bytes")


@dataclass(frozen=True)
class Budget:
    """How much is allowed, of each function.

    **Arguments**

    - `functions`: names of the functions that it is for; all functions but JAX's own where it is empty.
    - `traces`, `compiles`: how many of each; `None` for no limit.
    - `planned_bytes`: bytes of each executable: arguments, outputs and temporaries, donated memory once.
    """

    functions: tuple[str, ...] = ()
    traces: int | None = None
    compiles: int | None = None
    planned_bytes: int | None = None

    @classmethod
    def of(cls, *functions: Any, **limits: Any) -> Budget:
        """Make a budget of what a person wrote.

        **Raises** `UsageError` for a name that is none, an unknown limit, a limit that is no whole number, or none at all.
        """
        unknown = sorted(set(limits) - set(_KINDS))
        if unknown:
            raise UsageError(f"trace_budget has no limit {unknown[0]!r}: it takes {', '.join(_KINDS)}.")
        strange = [name for name in functions if not isinstance(name, str)]
        if strange:
            raise UsageError(
                f"trace_budget takes names of functions, not {strange[0]!r}: write 'step', and limits by name."
            )
        given = {name: limit for name, limit in limits.items() if limit is not None}
        for name, limit in given.items():
            if isinstance(limit, bool) or not isinstance(limit, int) or limit < 0:
                raise UsageError(f"trace_budget({name}=...) takes a whole number from 0 up, not {limit!r}.")
        if not given:
            raise UsageError("trace_budget has no limit: write for example trace_budget(traces=1, compiles=1).")
        return cls(functions, **given)

    def covers(self, key: FunctionKey) -> bool:
        """Whether a function is one of those that it is for."""
        return not self.functions or key.name in self.functions


@dataclass
class Spent:
    """What one function has used up: the programs that were traced and compiled, and the bytes of each executable."""

    traced: list[Compilation] = field(default_factory=list)
    compiled: list[Compilation] = field(default_factory=list)
    planned: list[int] = field(default_factory=list)


class Spending(StageWatch):
    """A block that keeps each trace and each compile by function.

    **Arguments**

    - `measure`: also ask the backend for the planned bytes of each new executable.
    """

    def __init__(self, *, measure: bool) -> None:
        super().__init__()
        self.spent: dict[FunctionKey, Spent] = {}
        self._measure = measure
        self._known: dict[int, Any] = {}

    def __enter__(self) -> Spending:
        if self._measure:
            self._new_executables()
        super().__enter__()
        return self

    def on_stage(self, event: Event, own: bool, made: Compilation) -> None:
        """Keep a trace or a compile."""
        if own and event.kind != "lower":
            spent = self.spent.setdefault(event.function, Spent())
            (spent.traced if event.kind == "trace" else spent.compiled).append(made)
        if event.kind == "compile" and self._measure:
            new = self._new_executables()
            if own:
                self.spent[event.function].planned += map(self._planned, new)

    @property
    def numbers(self) -> set[int]:
        """The `id` of each compilation of this block."""
        return {id(one) for spent in self.spent.values() for one in (*spent.traced, *spent.compiled)}

    def _new_executables(self) -> list[Any]:
        """The executables that appeared since it was last asked."""
        from jax.extend import backend

        # Held while the block is open: an executable that was dropped must not lend its identity to a new one.
        live = {id(one): one for one in backend.get_backend().live_executables()}
        new = [one for number, one in live.items() if number not in self._known]
        self._known.update(live)
        return new

    def _planned(self, executable: Any) -> int:
        about = executable.get_compiled_memory_stats()
        together = about.argument_size_in_bytes + about.output_size_in_bytes + about.temp_size_in_bytes
        return int(together - about.alias_size_in_bytes)

    def __exit__(self, *about: Any) -> None:
        super().__exit__(*about)
        self._known.clear()


def excesses(seen: Spending, budget: Budget) -> Iterator[str]:
    """Say of each function that is over the budget: what it is, the count, what is allowed, and why."""
    for key, spent in seen.spent.items():
        if not budget.covers(key):
            continue
        extra = {"trace": _beyond(spent.traced, budget.traces), "compile": _beyond(spent.compiled, budget.compiles)}
        for what, made, allowed in (
            ("trace", spent.traced, budget.traces),
            ("compile", spent.compiled, budget.compiles),
        ):
            if not extra[what]:
                continue
            yield f"{_named(key)}: {len(made)} {what}{'s' if len(made) > 1 else ''}, {allowed} allowed"
            # A retrace compiles too: say why once.
            told = extra["trace"] if what == "compile" else []
            for one in extra[what]:
                if not any(one is earlier for earlier in told):
                    yield textwrap.indent(str(explanation(one, seen.numbers)), "  ")
        if budget.planned_bytes is not None and spent.planned and max(spent.planned) > budget.planned_bytes:
            most, allowed = max(spent.planned), budget.planned_bytes
            yield f"{_named(key)}: {most:,} planned bytes ({written(most)}), {allowed:,} allowed ({written(allowed)})"


def _beyond(made: list[Compilation], allowed: int | None) -> list[Compilation]:
    return [] if allowed is None else made[allowed:]


def _named(key: FunctionKey) -> str:
    return key.name if key.location is None else f"{key.name} ({key.location})"


def hidden_buffers() -> str:
    """A sentence where XLA may leave temporaries out of its figures on this machine, else nothing."""
    import jax

    if jax.default_backend() != "cpu" or f"--{HIDING_OPTION}=" in os.environ.get("XLA_FLAGS", ""):
        return ""
    return (
        "On a CPU, XLA leaves the temporaries of some fusions out of planned_bytes, so the true figure can be higher. "
        f'To count them set XLA_FLAGS="--{HIDING_OPTION}=" before JAX starts.'
    )
