"""`stale`: what a jitted function took in from outside its arguments, and what of it has changed since.

The opposite fault of a retrace: a program that is reused although something it read has changed. JAX reads globals,
closure cells, defaults and the attributes of a static `self` while it traces, and never again.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import inspect
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence
from traceonce.observe.signature import serial_of, static_leaf

DIGESTED_BYTES = 1 << 20
"""Host arrays up to this size are compared by content, larger ones by identity."""
_DEPTH = 4
_BUILTINS = frozenset(dir(__builtins__) if isinstance(__builtins__, types.ModuleType) else __builtins__)


@dataclass(frozen=True, slots=True)
class Captured:
    """One value that a function read from outside its arguments.

    - `name`: how the function spells it: `scale`, `config.EPS`, `self.a`, `helper -> EPS` for what `helper` reads.
    - `kind`: `global`, `closure`, `default`, `attribute of self`, or `code` for a body that was edited in place.
    - `then`, `now`: the value at the last trace and today. `then` is `None` where the function was not watched then.
    - `changed`: whether they differ; `None` where that cannot be told.
    """

    name: str
    kind: str
    then: str | None
    now: str
    changed: bool | None

    def __str__(self) -> str:
        if self.changed is None:
            return f"{self.kind} {self.name}: {self.now}"
        if self.changed:
            return f"{self.kind} {self.name}: {self.then} when it was traced, {self.now} now"
        return f"{self.kind} {self.name}: {self.now}, unchanged"


@dataclass(frozen=True, slots=True, repr=False)
class Staleness:
    """What `stale` found."""

    function: str
    captured: tuple[Captured, ...]

    @property
    def changed(self) -> tuple[Captured, ...]:
        """What has changed since the last trace: the compiled program still uses the old value."""
        return tuple(one for one in self.captured if one.changed)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        listed = [one for one in self.captured if one.kind != "code" or one.changed]
        if not listed:
            return f"{self.function} reads nothing from outside its arguments"
        if self.changed:
            head = f"{self.function} still uses old values:"
        elif any(one.changed is None for one in self.captured):
            head = f"{self.function} was not watched when it was traced, so what has changed cannot be told; it reads:"
        else:
            head = f"{self.function} is up to date; it reads:"
        lines = [head, *(f"  {one}" for one in listed)]
        if self.changed:
            lines.append("  Pass what changes as an argument, or call clear_cache() on the function to trace it anew.")
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Reading:
    token: Any
    shown: str
    kind: str


Snapshot = dict[str, _Reading]


def stale(function: Any) -> Staleness:
    """List what a jitted function captured when it was traced, and which of it has changed since then.

    Values are compared with those at the last trace of `watch(function)`. For a function that was not watched when it
    was traced, the captured names are listed and `changed` is `None`: nothing is guessed.

    **Arguments**

    - `function`: a watched function, or any jitted or plain function.

    **Raises** `TraceOnceError` where the function's code cannot be read, as for a builtin.
    """
    wrapped = getattr(function, "wrapped", function)
    if evidence.code_of(wrapped) is None:
        raise TraceOnceError(
            f"stale() reads a function's Python code, and {function!r} has none: give it the function that you jitted.",
            exit_code=2,
        )
    then, instance = getattr(function, "at_last_trace", None) or (None, None)
    instance = instance() if instance is not None else None
    now = snapshot(wrapped, instance)
    found = []
    for name, reading in now.items():
        before = None if then is None else then.get(name)
        if before is None:
            found.append(Captured(name, reading.kind, None, reading.shown, None))
        else:
            found.append(Captured(name, reading.kind, before.shown, reading.shown, before.token != reading.token))
    gone = [] if then is None else [name for name in then if name not in now]
    found += [Captured(name, then[name].kind, then[name].shown, "gone", True) for name in gone if then is not None]
    return Staleness(evidence.jax_name(wrapped), tuple(found))


def snapshot(function: Any, instance: Any = None) -> Snapshot:
    """Read everything that a function takes from outside its arguments, today."""
    readings: Snapshot = {}
    for name, kind, value in _captured(function, instance, "", set()):
        readings.setdefault(name, _Reading(_token(value, _DEPTH), _brief(value), kind))
    return readings


def _captured(function: Any, instance: Any, prefix: str, visited: set[int]) -> Iterator[tuple[str, str, Any]]:
    while isinstance(function, functools.partial):
        for position, value in enumerate(function.args):
            yield f"{prefix}partial argument {position}", "default", value
        for name, value in function.keywords.items():
            yield f"{prefix}{name}", "default", value
        function = function.func
    if inspect.ismethod(function):
        instance = function.__self__ if instance is None else instance
    inner = evidence.unwrapped(function)
    if not isinstance(inner, types.FunctionType):
        instance = inner if instance is None else instance
        inner = evidence.unwrapped(type(inner).__call__)
    if not isinstance(inner, types.FunctionType) or id(inner) in visited:
        return
    visited.add(id(inner))
    code = inner.__code__
    yield f"{prefix}{inner.__name__}", "code", code
    spec = inspect.getfullargspec(inner)
    for name, value in zip(reversed(spec.args), reversed(inner.__defaults__ or ()), strict=False):
        yield f"{prefix}{name}", "default", value
    for name, value in (inner.__kwdefaults__ or {}).items():
        yield f"{prefix}{name}", "default", value
    cells = dict(zip(code.co_freevars, inner.__closure__ or (), strict=True))
    for where, root, attributes in dict.fromkeys(_reads(code)):
        if where == "closure" and root in cells:
            try:
                value = cells[root].cell_contents
            except ValueError:
                continue  # the cell is empty: the name was never bound, or was deleted
            yield from _follow(root, attributes, value, "closure", prefix, visited)
        elif where == "global" and root in inner.__globals__:
            yield from _follow(root, attributes, inner.__globals__[root], "global", prefix, visited)
        elif where == "local" and instance is not None and [root] == spec.args[:1] and attributes:
            value = getattr(instance, attributes[0], None)
            if not inspect.ismethod(value):
                yield f"{prefix}{root}.{attributes[0]}", "attribute of self", value


def _follow(
    root: str, attributes: tuple[str, ...], value: Any, kind: str, prefix: str, visited: set[int]
) -> Iterator[tuple[str, str, Any]]:
    """Report a value that was read; go through the user's modules and into the user's own functions."""
    name = root
    for attribute in attributes:
        if not isinstance(value, types.ModuleType):
            break
        if _is_library(value.__name__):
            return
        value, name = getattr(value, attribute, None), f"{name}.{attribute}"
    if isinstance(value, (types.ModuleType, type)):
        return
    plain = evidence.unwrapped(value) if callable(value) else None
    if isinstance(plain, types.FunctionType):
        if not _is_library(plain.__module__ or ""):
            yield from _captured(value, None, f"{prefix}{name} -> ", visited)
        return
    yield f"{prefix}{name}", kind, value


def _is_library(module: str) -> bool:
    top = module.partition(".")[0]
    return top in ("jax", "jaxlib", "numpy", "equinox", "optax", "scipy", "traceonce") or top in _STANDARD


_STANDARD = sys.stdlib_module_names


def _reads(code: types.CodeType) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield each name that code reads: where from, the name, and the attributes read from it; nested functions too."""
    root: tuple[str, str] | None = None
    attributes: list[str] = []
    for instruction in dis.get_instructions(code):
        operation = instruction.opname
        if root is not None and operation in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.append(str(instruction.argval))
            continue
        if root is not None:
            yield (*root, tuple(attributes))
            root, attributes = None, []
        where = next((kind for start, kind in _LOADS.items() if operation.startswith(start)), None)
        if where is not None:
            loaded = instruction.argval
            name = str(loaded[-1] if isinstance(loaded, tuple) else loaded)  # one instruction may load two names
            if name not in _BUILTINS:
                root = (where, name)
    if root is not None:
        yield (*root, tuple(attributes))
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _reads(constant)


_LOADS = {"LOAD_GLOBAL": "global", "LOAD_NAME": "global", "LOAD_DEREF": "closure", "LOAD_FAST": "local"}


def _token(value: Any, depth: int) -> Any:
    """Return something that is equal for two readings exactly when the value has not changed, as far as can be told."""
    if isinstance(value, types.CodeType):
        return (value.co_code, repr(value.co_consts), value.co_names)
    if isinstance(value, jax.Array):
        return ("array", serial_of(value))  # immutable: the same object is the same value
    if isinstance(value, np.ndarray):
        if value.nbytes > DIGESTED_BYTES or value.dtype.hasobject:
            return ("ndarray", serial_of(value))
        return ("ndarray", value.shape, str(value.dtype), hashlib.sha256(np.ascontiguousarray(value)).hexdigest())
    if depth and isinstance(value, dict):
        return ("dict", *((static_leaf(key).token, _token(item, depth - 1)) for key, item in value.items()))
    if depth and isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        return (type(value), *(_token(item, depth - 1) for item in items))
    if depth and hasattr(value, "__dict__") and not callable(value) and not isinstance(value, type):
        return ("object", serial_of(value), _token(vars(value), depth - 1))
    return static_leaf(value).token


def _brief(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return f"the body at {evidence.place(value.co_filename, value.co_firstlineno)}"
    if isinstance(value, (jax.Array, np.ndarray)):
        kind = f"{value.dtype.name}[{','.join(map(str, value.shape))}]"
        small = value.size <= 8 and np.issubdtype(value.dtype, np.number) and not isinstance(value, jax.core.Tracer)
        # Reading a device array is a JAX call, which this package makes on the main thread alone.
        if small and (isinstance(value, np.ndarray) or threading.current_thread() is threading.main_thread()):
            return f"{kind} {np.asarray(value).tolist()}"
        return kind
    return static_leaf(value).shown
