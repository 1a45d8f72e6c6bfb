"""What a chart can draw, as plain records. Whoever measures makes them; `show` only draws them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """A quantity over time: `points` are (seconds, value) pairs in the order of time."""

    label: str
    points: tuple[tuple[float, float], ...] = ()


@dataclass(frozen=True)
class Limit:
    """A value that a quantity must not pass, such as a memory cap."""

    label: str
    value: float


@dataclass(frozen=True)
class Timeline:
    """Bytes over seconds: memory of this process, or of a child on its way to its cap.

    **Arguments**

    - `title`: what is drawn, in a few words.
    - `lines`: one or more; they may start empty and grow while a cell runs.
    - `limit`: drawn across the picture.
    - `ending`: how it ended, such as `"killed by SIGKILL"`; written at the last point.
    """

    title: str
    lines: tuple[Line, ...]
    limit: Limit | None = None
    ending: str = ""


@dataclass(frozen=True)
class Arm:
    """One of the things compared: `values` are bytes, one for each part of the `Bars`."""

    label: str
    values: tuple[float, ...]


@dataclass(frozen=True)
class Bars:
    """Bytes side by side, such as the memory plans of several ways to compute the same.

    **Arguments**

    - `title`: what is compared, in a few words.
    - `parts`: the names of what each bar is made of, such as arguments, outputs, temporaries.
    - `arms`: the bars, from top to bottom.

    Raises `ValueError` where an arm has not one value for each part.
    """

    title: str
    parts: tuple[str, ...]
    arms: tuple[Arm, ...]

    def __post_init__(self) -> None:
        for arm in self.arms:
            if len(arm.values) != len(self.parts):
                raise ValueError(f"The arm {arm.label!r} has {len(arm.values)} values for {len(self.parts)} parts.")


def bytes_text(value: float) -> str:
    """`8.3 MB` for 8 294 400: three digits, powers of 1000."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if abs(value) < 999.5 or unit == "TB":
            break
        value /= 1000
    digits = 0 if unit == "B" or abs(value) >= 99.95 else 1
    return f"{value:.{digits}f} {unit}"


def plural(count: int, noun: str) -> str:
    """`1 trace`, `2 traces`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
