"""What a file of hidden asserts imports.

Hidden asserts run in the judge. They ask the sandboxed submission through the `lab` fixture and see only data that came
back: no student object, no student code. See ``docs/grading.md`` for how to write one.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

import numpy as np

from traceonce.grade.values import Deleted, Host, Key, Node, Opaque, Ref, Tracer

__all__ = [
    "Deleted",
    "Graded",
    "Host",
    "Key",
    "KeyUse",
    "Node",
    "Observation",
    "Opaque",
    "Program",
    "Ref",
    "StudentError",
    "Tracer",
    "graded",
    "same_tree",
]

_Test = TypeVar("_Test", bound=Callable[..., None])


@dataclass(frozen=True)
class Graded:
    """What a hidden assert is worth and what a learner may know of it.

    **Arguments**

    - `points`: for passing.
    - `task`: the `grade_id` of the solution cell that it is about.
    - `title`: what is checked, as a statement that is true of a right answer. Public.
    - `hint`: what to look at when it fails. Public.
    - `needs`: asserts, by name, that stand before it in the file. Where one of them did not pass, this one could not be checked:
      its hint would send the learner the wrong way.
    """

    points: float
    task: str
    title: str
    hint: str
    needs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not (math.isfinite(self.points) and self.points > 0):
            raise ValueError(f"points must be a positive number, not {self.points!r}")


def graded(*, points: float, task: str, title: str, hint: str, needs: tuple[str, ...] = ()) -> Callable[[_Test], _Test]:
    """Mark a pytest function as a graded hidden assert; see `Graded`."""
    record = Graded(points, task, title, hint, needs)

    def mark(test: _Test) -> _Test:
        test.__graded__ = record  # type: ignore[attr-defined]
        return test

    return mark


class StudentError(Exception):
    """Student code raised, or took too long, or gave something that cannot be handed over.

    Let it rise, and the assert fails with the learner's own line shown; or expect it::

        with pytest.raises(StudentError) as caught:
            lab.call("checked_set", values, 9, 1.0)
        assert caught.value.is_a("IndexError")

    **Arguments**

    - `kind`: `raised`, `timeout`, `memory`, `value` (the result cannot be handed over) or `unknown` (no such name).
    - `type_name`, `bases`: the exception's class and the names of its base classes, itself first.
    - `message`: its text, cut to 300 characters.
    - `cell`, `line`: the line in the student's cell, from 1; 0 where there is none.
    """

    def __init__(
        self,
        kind: str,
        type_name: str = "",
        bases: tuple[str, ...] = (),
        message: str = "",
        cell: str = "",
        line: int = 0,
    ) -> None:
        super().__init__(f"{type_name or kind}: {message}")
        self.kind, self.type_name, self.bases = kind, type_name, bases
        self.message, self.cell, self.line = message, cell, line

    def is_a(self, *names: str) -> bool:
        """Whether the exception is of one of these classes, or of one derived from them."""
        return any(name in self.bases for name in names)


class KeyUse(NamedTuple):
    """What was done with one random key.

    **Arguments**

    - `kind`: `draw` (random bits), `split` or `fold_in`; `key`: its data; `data`: what was folded in, otherwise `None`.
    - `times`: how often.
    """

    kind: str
    key: tuple[int, ...]
    data: int | None
    times: int


@dataclass(frozen=True)
class Observation:
    """What was seen while a student's function was called.

    **Arguments**

    - `values`: what each repetition returned.
    - `arguments`, `keywords`: the arguments of the last repetition as they are after it.
    - `traces`, `compiles`: of the function itself, over all repetitions.
    - `other_traces`, `other_compiles`: by name, of everything else that was traced or compiled, `jnp` helpers included.
    - `reads`, `waits`: how often it brought a value to the host, and how often it awaited the device otherwise; see
      `traceonce.observe.syncs`.
    - `keys`: what was done with the keys in the arguments and with all that derive from them, where that was asked for;
      `reused_keys`: those that were used up more than once, as `traceonce.key_uses` counts it.
    - `printed`: what it printed, cut to 4000 characters.
    - `changed_globals`: the notebook's names whose value was replaced or altered, in order. Also a function's attributes,
      defaults and closure, under the function's name.
    """

    values: tuple[Any, ...]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    traces: int
    compiles: int
    other_traces: dict[str, int] = field(default_factory=dict)
    other_compiles: dict[str, int] = field(default_factory=dict)
    printed: str = ""
    changed_globals: tuple[str, ...] = ()
    reads: int = 0
    waits: int = 0
    keys: tuple[KeyUse, ...] = ()
    reused_keys: tuple[tuple[int, ...], ...] = ()

    @property
    def value(self) -> Any:
        """What the last repetition returned."""
        return self.values[-1]


@dataclass(frozen=True)
class Program:
    """A student's function as a compiled program, as a process without student code found it.

    **Arguments**

    - `value`: what it gives for the arguments; `None` where it was not run.
    - `shapes`: those of the arrays in its result, in the order of the leaves.
    - `operations`: of StableHLO in its text. The body of a scan counts once, an unrolled loop as often as it runs.
    - `arguments`, `outputs`, `temporaries`: bytes that XLA plans, the same on every machine.
    - `complete`: `False` where this XLA may hide temporaries; see `traceonce.observe.plan`.
    """

    value: Any
    shapes: tuple[tuple[int, ...], ...]
    operations: int
    arguments: int
    outputs: int
    temporaries: int
    complete: bool = True

    @property
    def total(self) -> int:
        """Bytes of arguments, outputs and temporaries."""
        return self.arguments + self.outputs + self.temporaries


def same_tree(left: Any, right: Any, *, rtol: float = 0.0, atol: float = 0.0) -> bool:
    """Whether two values have the same structure and, leaf by leaf, the same shape and values.

    Numbers and arrays compare by `numpy.allclose` with NaN equal to NaN; a Python number matches a 0-d array. Dtypes are not
    compared. Anything without a form on the wire (`Opaque`, `Tracer`) equals nothing.
    """
    if isinstance(left, Opaque | Tracer) or isinstance(right, Opaque | Tracer):
        return False
    if isinstance(left, Node) and isinstance(right, Node):
        return left.name == right.name and same_tree(left.fields, right.fields, rtol=rtol, atol=atol)
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(same_tree(left[k], right[k], rtol=rtol, atol=atol) for k in left)
    if isinstance(left, tuple | list):
        return (
            type(left) is type(right)
            and len(left) == len(right)
            and all(same_tree(a, b, rtol=rtol, atol=atol) for a, b in zip(left, right, strict=True))
        )
    if _is_numeric(left) and _is_numeric(right):
        a, b = np.asarray(left), np.asarray(right)
        if a.shape != b.shape:
            return False
        if a.dtype == bool or b.dtype == bool or rtol == atol == 0:
            return bool(a.dtype.kind in "fc" and b.dtype.kind in "fc" and np.array_equal(a, b, equal_nan=True)) or bool(
                np.array_equal(a, b)
            )
        return bool(np.allclose(a.astype(_wide(a)), b.astype(_wide(b)), rtol=rtol, atol=atol, equal_nan=True))
    return type(left) is type(right) and bool(left == right)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind not in "SUO"
    return isinstance(value, bool | int | float | complex)


def _wide(array: np.ndarray[Any, Any]) -> type:
    """A type in which differences do not overflow; extension types such as bfloat16 have none of their own."""
    return np.complex128 if array.dtype.kind == "c" else np.float64
