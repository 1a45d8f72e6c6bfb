"""From what `observe` and `sandbox` recorded to what a chart can draw. Records are known by their fields, not by class."""

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from traceonce.show.records import Arm, Bars, Limit, Line, Timeline

MEGABYTE = 1e6
"""A capped child's record is in what it calls MB: its cap of 500 MB is drawn as 500 MB."""

_PARTS = ("arguments", "new outputs", "temporaries")
_ENDINGS = {
    "finished": "came to its end",
    "raised": "raised an exception",
    "exited": "ended itself",
    "memory_error": "MemoryError",
    "resource_exhausted": "RESOURCE_EXHAUSTED",
    "over_cap": "killed at the cap",
    "killed": "killed by SIGKILL",
    "aborted": "aborted (SIGABRT)",
    "crashed": "ended by a signal",
    "timeout": "killed: time was up",
}


class Planned(Protocol):
    """The part of `traceonce.observe.Plan` that is drawn."""

    @property
    def function(self) -> str: ...

    @property
    def platform(self) -> str: ...

    @property
    def arguments(self) -> int: ...

    @property
    def outputs(self) -> int: ...

    @property
    def temporaries(self) -> int: ...

    @property
    def aliases(self) -> int: ...

    @property
    def complete(self) -> bool: ...


def is_plan(record: Any) -> bool:
    """Whether it is what `plan(...)` returned."""
    return all(hasattr(record, name) for name in ("temporaries", "aliases", "complete"))


def is_comparison(record: Any) -> bool:
    """Whether it is what `plan.compare(...)` returned."""
    plans = getattr(record, "plans", None)
    return isinstance(plans, dict) and bool(plans) and all(map(is_plan, plans.values()))


def is_memory(record: Any) -> bool:
    """Whether it is what `watch_memory()` opened."""
    return all(hasattr(record, name) for name in ("samples", "peak_rss", "subscribe", "when_closed"))


def are_samples(record: Any) -> bool:
    """Whether these are samples of this process's memory."""
    return (
        isinstance(record, Sequence)
        and not isinstance(record, str)
        and bool(record)
        and all(hasattr(one, "rss") and hasattr(one, "at") for one in record)
    )


def is_ending(record: Any) -> bool:
    """Whether it is what `run_capped(...)` returned."""
    return all(hasattr(record, name) for name in ("samples", "cap_mb", "kind", "sentence"))


def bars_of(plans: dict[str, Planned]) -> Bars:
    """Plans side by side. A bar is as long as the plan's total: outputs that take a donated argument's memory count once."""
    arms = tuple(Arm(name, (one.arguments, one.outputs - one.aliases, one.temporaries)) for name, one in plans.items())
    platforms = ", ".join(dict.fromkeys(one.platform for one in plans.values()))
    hidden = "" if all(one.complete for one in plans.values()) else "; temporaries may be missing"
    return Bars(f"Planned bytes on {platforms}{hidden}", _PARTS, arms)


def timeline_of(samples: Iterable[Any]) -> Timeline:
    """Samples of this process's memory over the seconds since the first."""
    taken = list(samples)
    begun = taken[0].at if taken else 0.0
    points: dict[str, list[tuple[float, float]]] = {label: [] for label in lines_of(taken)}
    for one in taken:
        for label, value in values_of(one):
            points.setdefault(label, []).append((one.at - begun, value))
    return Timeline("Memory of this process", tuple(Line(label, tuple(held)) for label, held in points.items()))


def lines_of(samples: Sequence[Any]) -> tuple[str, ...]:
    """The names of the lines that samples like these have. A chart that is still to grow needs them beforehand."""
    named = dict.fromkeys(("RSS", "live arrays"))
    for one in samples:
        named |= dict.fromkeys(label for label, _ in values_of(one))
    return tuple(named)


def values_of(one: Any) -> Iterable[tuple[str, float]]:
    """What one sample says: a line's name and bytes. A sample between call boundaries has RSS alone."""
    yield "RSS", one.rss
    if one.live is not None:
        yield "live arrays", one.live.bytes
    for device in one.devices or ():
        if device.in_use is not None:
            yield f"in use on {device.device}", device.in_use


def timeline_of_child(cap_mb: float, title: str, samples: Iterable[Any] = (), ending: str = "") -> Timeline:
    """The memory of a capped child on its way to the cap."""
    points = tuple((one.seconds, one.rss_mb * MEGABYTE) for one in samples)
    return Timeline(title, (Line("resident", points),), Limit("the cap", cap_mb * MEGABYTE), ending)


def ending_words(ending: Any) -> str:
    """How a child ended, short enough to stand in a picture."""
    return ending if isinstance(ending, str) else _ENDINGS.get(ending.kind, str(ending.kind))
