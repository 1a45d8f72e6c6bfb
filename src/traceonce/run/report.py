"""What the witness heard: accumulated while the program runs, and then a plain record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

KEPT_REASONS = 200
"""How many reasons of one function are kept in full: the first. All are counted by cause."""
KEPT_STAGES = 20_000
"""How many stages are kept for the picture: the first. All are counted."""

Where = tuple[str, str | None]
"""A function: its name, and `file:line` where that is known."""


@dataclass(frozen=True)
class Function:
    """What was seen of one function.

    **Arguments**

    - `name`, `location`: the function, and `file:line` where it was defined, if that is known.
    - `calls`: how often it was called; `None` where nobody counted.
    - `traces`, `lowerings`, `compiles`, `cache_hits`: how often each happened.
    - `trace_seconds`, `lower_seconds`, `compile_seconds`: how long each took in all. A trace contains the traces inside it.
    """

    name: str
    location: str | None
    calls: int | None
    traces: int
    lowerings: int
    compiles: int
    cache_hits: int
    trace_seconds: float
    lower_seconds: float
    compile_seconds: float

    @property
    def seconds(self) -> float:
        """How long all stages took."""
        return self.trace_seconds + self.lower_seconds + self.compile_seconds


@dataclass(frozen=True)
class Reason:
    """Why one program of a function was made again; the fields are those of `traceonce.observe.Explanation`."""

    name: str
    location: str | None
    number: int
    step: str
    cause: str
    nearest: int | None
    changes: tuple[dict[str, str], ...]
    repair: str
    doubt: str
    text: str

    @property
    def kind(self) -> tuple[str, ...]:
        """Equal for two reasons that differ only in their values: the step, and the cause and path of each change."""
        return (self.step, self.cause, *(f"{change['cause']} {change['path']}" for change in self.changes))


@dataclass(frozen=True)
class Stage:
    """One trace, lowering or compile: when it began and how long it took, in seconds since the program began."""

    stage: str
    name: str
    own: bool
    at: float
    seconds: float
    failed: bool
    cache_hit: bool


@dataclass(frozen=True)
class Report:
    """Everything that is known of a run.

    **Arguments**

    - `command`: what followed `python` on the command line; `folder`: where it was given.
    - `jax`: the version, or `None` where JAX was not imported.
    - `complete`: whether the program told its end; `False` where a signal or `os._exit` ended it.
    - `seconds`: how long it ran. `busy`: during how much of that something was traced, lowered or compiled.
    - `functions`: the program's and its libraries'; `helpers`: JAX's own operations, all together, and
      `helper_names`: how often each of them was compiled, by name, the slowest first.
    - `reasons`: by function, those kept; `kinds`: by function, how often each kind of reason came.
    - `peak`: the most memory that the process held, in bytes, `None` where unknown; `children_peak`: that of its
      largest child process, 0 without one. `devices`: peak bytes of each device that counts them.
    - `stages`: for the picture. `troubles`: what the observer could not do.
    """

    command: tuple[str, ...]
    folder: str
    jax: str | None
    complete: bool
    seconds: float
    busy: float
    functions: tuple[Function, ...]
    helpers: Function
    helper_names: tuple[tuple[str, int], ...]
    reasons: dict[Where, tuple[Reason, ...]]
    kinds: dict[Where, tuple[tuple[tuple[str, ...], int], ...]]
    peak: int | None
    children_peak: int
    devices: tuple[tuple[str, int], ...]
    stages: tuple[Stage, ...]
    troubles: tuple[str, ...]

    def as_json(self) -> str:
        """The record for machines. Times in seconds, memory in bytes."""
        document = {
            "command": list(self.command),
            "folder": self.folder,
            "jax": self.jax,
            "complete": self.complete,
            "seconds": round(self.seconds, 6),
            "busy_seconds": round(self.busy, 6),
            "functions": [asdict(function) for function in self.functions],
            "jax_operations": {**asdict(self.helpers), "by_name": dict(self.helper_names)},
            "again": [asdict(reason) for reasons in self.reasons.values() for reason in reasons],
            "again_by_kind": [
                {"name": name, "location": location, "kind": list(kind), "count": count}
                for (name, location), kinds in self.kinds.items()
                for kind, count in kinds
            ],
            "memory": {
                "peak_bytes": self.peak,
                "exact": self.complete,
                "largest_child_bytes": self.children_peak,
                "devices": dict(self.devices),
            },
            "troubles": list(self.troubles),
        }
        return json.dumps(document, indent=2)


class _Busy:
    """When something ran on one thread. Stages come when they end, inner ones before the outer one, which covers them."""

    def __init__(self) -> None:
        self.spans: list[tuple[float, float]] = []

    def add(self, start: float, end: float) -> None:
        while self.spans and self.spans[-1][0] >= start:
            self.spans.pop()
        self.spans.append((start, end))


def _union(spans: list[tuple[float, float]]) -> float:
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


@dataclass
class _Row:
    traces: int = 0
    lowerings: int = 0
    compiles: int = 0
    cache_hits: int = 0
    trace_seconds: float = 0.0
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0

    def add(self, message: dict[str, Any]) -> None:
        stage, seconds = message["stage"], message["seconds"]
        if stage == "trace":
            self.traces += 1
            self.trace_seconds += seconds
        elif stage == "lower":
            self.lowerings += 1
            self.lower_seconds += seconds
        else:
            self.compiles += 1
            self.cache_hits += message["cache_hit"]
            self.compile_seconds += seconds

    def function(self, where: Where, calls: int | None) -> Function:
        return Function(*where, calls, **asdict(self))


def _together(rows: Iterable[_Row]) -> _Row:
    parts = [astuple(row) for row in rows]
    return _Row(*map(sum, zip(*parts, strict=True))) if parts else _Row()


@dataclass
class Heard:
    """The messages of a program, taken in one by one."""

    command: tuple[str, ...]
    folder: str
    ended: bool = False
    _jax: str | None = None
    _rows: dict[Where, _Row] = field(default_factory=dict)
    _helpers: dict[str, _Row] = field(default_factory=dict)
    _calls: dict[Where, int] = field(default_factory=dict)
    _reasons: dict[Where, list[Reason]] = field(default_factory=dict)
    _kinds: dict[Where, Counter[tuple[str, ...]]] = field(default_factory=dict)
    _busy: dict[int, _Busy] = field(default_factory=dict)
    _stages: list[Stage] = field(default_factory=list)
    _devices: list[tuple[str, int]] = field(default_factory=list)
    _troubles: list[str] = field(default_factory=list)
    _peak: int | None = None
    _children_peak: int = 0
    _seconds: float | None = None

    def sample(self, peak: int | None) -> None:
        """Take in the process's peak memory as the system tells it now, in bytes."""
        if peak is not None:
            self._peak = max(self._peak or 0, peak)

    def take(self, message: dict[str, Any]) -> None:
        """Take in one message of `traceonce.run.inside` or `traceonce.run.recorder`."""
        kind = message["kind"]
        where = (message.get("name", ""), message.get("location"))
        if kind == "stage":
            self._take_stage(where, message)
        elif kind == "why":
            self._take_reason(where, message)
        elif kind == "calls":
            self._calls[where] = message["calls"]
        elif kind == "jax":
            self._jax = message["version"]
        elif kind == "device":
            self._devices.append((message["name"], message["peak"]))
        elif kind == "trouble":
            if message["text"] not in self._troubles:
                self._troubles.append(message["text"])
        elif kind == "end":
            self.ended = True
            self.sample(message["peak"])
            self._children_peak = message["children_peak"]
            self._seconds = message["at"]

    def _take_stage(self, where: Where, message: dict[str, Any]) -> None:
        row = self._rows.setdefault(where, _Row()) if message["own"] else self._helpers.setdefault(where[0], _Row())
        row.add(message)
        at, seconds = message["at"], message["seconds"]
        self._busy.setdefault(message["thread"], _Busy()).add(at, at + seconds)
        if len(self._stages) < KEPT_STAGES:
            about = (message["stage"], message["name"], message["own"], at, seconds)
            self._stages.append(Stage(*about, message["failed"], message["cache_hit"]))

    def _take_reason(self, where: Where, message: dict[str, Any]) -> None:
        about = {key: message[key] for key in Reason.__dataclass_fields__ if key != "changes"}
        reason = Reason(**about, changes=tuple(message["changes"]))
        self._kinds.setdefault(where, Counter())[reason.kind] += 1
        kept = self._reasons.setdefault(where, [])
        if len(kept) < KEPT_REASONS:
            kept.append(reason)

    def report(self, seconds: float) -> Report:
        """The record. `seconds` is how long the program ran, where it did not say so itself."""
        functions = [row.function(where, self._calls.get(where)) for where, row in self._rows.items()]
        functions += [_Row().function(where, calls) for where, calls in self._calls.items() if where not in self._rows]
        helpers = sorted(self._helpers.items(), key=lambda item: -item[1].compile_seconds)
        return Report(
            command=self.command,
            folder=self.folder,
            jax=self._jax,
            complete=self.ended,
            seconds=seconds if self._seconds is None else self._seconds,
            busy=_union([span for busy in self._busy.values() for span in busy.spans]),
            functions=tuple(sorted(functions, key=lambda function: -function.seconds)),
            helpers=_together(self._helpers.values()).function(("JAX's own operations", None), None),
            helper_names=tuple((name, row.compiles) for name, row in helpers if row.compiles),
            reasons={where: tuple(reasons) for where, reasons in self._reasons.items()},
            kinds={where: tuple(kinds.most_common()) for where, kinds in self._kinds.items()},
            peak=self._peak,
            children_peak=self._children_peak,
            devices=tuple(self._devices),
            stages=tuple(self._stages),
            troubles=tuple(self._troubles),
        )
