"""What holds this array? And a call that lets go of what a notebook holds behind one's back.

Deleting a name frees an array only when nothing else refers to it. In a notebook much does: displayed outputs (`Out`,
`_`), the traceback of the last error with all its frames, closures, lists of metrics that were never converted.
"""

from __future__ import annotations

import gc
import sys
import threading
import types
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import jax

from traceonce.errors import TraceOnceError
from traceonce.observe.memory import buffers_of, live_bytes, written

VISITED = 200_000
"""How many objects the search looks at before it says that it did not see everything."""

Where = Literal["variable", "output", "traceback", "closure", "running call"]


@dataclass(frozen=True, slots=True)
class Holder:
    """One way from something that lives on to an array.

    - `where`: what kind of place it is.
    - `path`: the way there as one would write it: `history[3]['grad']`, `Out[5]`, `the last error: big in f`.
    """

    where: Where
    path: str

    def __str__(self) -> str:
        return f"{self.where}: {self.path}"


@dataclass(frozen=True, slots=True, repr=False)
class Held:
    """A live buffer and what holds it. `complete` is `False` where the search had to stop early."""

    array: str
    bytes: int
    holders: tuple[Holder, ...]
    complete: bool

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        head = f"{self.array}, {written(self.bytes)}"
        if not self.holders:
            unseen_part = "nothing that Python shows" if self.complete else "nothing among the objects looked at"
            return f"{head}: held by {unseen_part}"
        return "\n".join([f"{head}:", *(f"  {holder}" for holder in self.holders)])


def holders(array: Any, namespace: Mapping[str, Any] | None = None) -> Held:
    """Say what holds an array: every way found from a variable, an output, a traceback, a closure or a running call.

    Another array object that shares the buffer counts as the same. Call it on the main thread.

    **Arguments**

    - `array`: a `jax.Array`.
    - `namespace`: the variables to start from; those of the notebook, or else of `__main__`.

    **Raises** `TraceOnceError` for anything that is not an array, and for a deleted one.
    """
    if isinstance(array, jax.core.Tracer):
        raise TraceOnceError(
            "This is a tracer that a jitted function left behind, and no array: run that function again within "
            "`with jax.checking_leaks():` to see which.",
            exit_code=2,
        )
    if not isinstance(array, jax.Array):
        raise TraceOnceError(
            f"holders() takes a jax.Array, not {type(array).__name__}: pass one leaf of a tree.", exit_code=2
        )
    if array.is_deleted():
        raise TraceOnceError("This array was deleted or donated: it holds no memory any more.", exit_code=2)
    found = _search(namespace, here=sys._getframe(1), only=frozenset(buffers_of(array)))
    return _held(array, *found)


def largest(count: int = 10, namespace: Mapping[str, Any] | None = None) -> tuple[Held, ...]:
    """Return the largest live buffers of the process, each with what holds it. Call it on the main thread."""
    arrays: dict[tuple[str, int], jax.Array] = {}
    for array in jax.live_arrays():
        if not array.is_deleted():
            for buffer in buffers_of(array):
                arrays.setdefault(buffer, array)
    chosen = sorted(arrays.items(), key=lambda pair: -pair[1].nbytes)[:count]
    found = _search(namespace, here=sys._getframe(1), only=frozenset(buffer for buffer, _ in chosen))
    return tuple(_held(array, *found) for _, array in chosen)


def _held(array: jax.Array, ways: dict[tuple[str, int], list[Holder]], complete: bool) -> Held:
    mine = [holder for buffer in buffers_of(array) for holder in ways.get(buffer, ())]
    name = f"{array.dtype.name}[{','.join(map(str, array.shape))}]"
    return Held(name, array.nbytes, tuple(dict.fromkeys(mine)), complete)


# -- where to start


def _shell() -> Any:
    """Return the running IPython shell, or `None`."""
    interactive = sys.modules.get("IPython.core.interactiveshell")
    shell_class = getattr(interactive, "InteractiveShell", None)
    return shell_class.instance() if shell_class is not None and shell_class.initialized() else None


Root = tuple[Where, str, Any]


def _roots(namespace: Mapping[str, Any] | None, here: types.FrameType | None) -> Iterator[Root]:
    shell = _shell() if namespace is None else None
    if namespace is None:
        namespace = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    hidden = set() if shell is None else set(shell.user_ns_hidden)
    for name, value in list(namespace.items()):
        if name in ("Out", "_oh"):
            continue
        if shell is not None and (name in hidden or name.lstrip("_").isdecimal() or name in ("_", "__", "___")):
            if name.startswith("_"):
                yield "output", name, value
            continue
        if not isinstance(value, types.ModuleType):
            yield "variable", name, value
    if shell is not None:
        for number, value in list(shell.user_ns.get("_oh", {}).items()):
            yield "output", f"Out[{number}]", value
        yield "output", "the last displayed value", shell.user_ns_hidden.get("_")
        yield from _roots_of_errors(shell)
    elif getattr(sys, "last_traceback", None) is not None:
        yield "traceback", "the last error", sys.last_traceback
    yield from _roots_of_calls(here)


def _roots_of_errors(shell: Any) -> Iterator[Root]:
    printer = getattr(shell, "InteractiveTB", None)
    result = getattr(shell, "last_execution_result", None)
    for value in (
        getattr(shell, "_last_traceback", None),
        getattr(printer, "tb", None),
        getattr(printer, "etb", None),
        getattr(getattr(printer, "evalue", None), "__traceback__", None),
        getattr(getattr(result, "error_in_exec", None), "__traceback__", None),
        getattr(sys, "last_traceback", None),
    ):
        yield "traceback", "the last error", value
    yield "output", "the result of the last cell", getattr(result, "result", None)


def _roots_of_calls(here: types.FrameType | None) -> Iterator[Root]:
    own = threading.get_ident()
    for thread, frame in list(sys._current_frames().items()):
        at: types.FrameType | None = here if thread == own else frame
        while at is not None:
            if not _is_machinery(at):
                for name, value in list(at.f_locals.items()):
                    yield "running call", f"{name} in {at.f_code.co_name}", value
            at = at.f_back


_MACHINERY = frozenset(
    ("IPython", "ipykernel", "traitlets", "tornado", "asyncio", "zmq", "threading", "concurrent", "traceonce", "runpy")
)


def _is_machinery(frame: types.FrameType) -> bool:
    """Tell whether a frame only leads to the variables of the session, which are searched anyway."""
    module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
    return module in _MACHINERY or frame.f_code.co_name == "<module>"


# -- the search


def _search(
    namespace: Mapping[str, Any] | None, here: types.FrameType | None, only: frozenset[tuple[str, int]]
) -> tuple[dict[tuple[str, int], list[Holder]], bool]:
    """Follow references breadth first from every root, and note each way that ends at one of the buffers."""
    gc.collect()
    ways: dict[tuple[str, int], list[Holder]] = {}
    queue: deque[Root] = deque(_roots(namespace, here))
    visited: set[int] = set()
    seen_roots: set[tuple[str, str, int]] = set()
    kept_alive: list[Any] = []  # so that no address is given to another object during the search
    looked = 0
    while queue and looked < VISITED:
        where, path, value = queue.popleft()
        looked += 1
        if isinstance(value, jax.Array):
            if (
                not isinstance(value, jax.core.Tracer)
                and not value.is_deleted()
                and (where, path, id(value)) not in seen_roots
            ):
                seen_roots.add((where, path, id(value)))
                for buffer in only & buffers_of(value).keys():
                    ways.setdefault(buffer, []).append(Holder(where, path))
            continue
        if isinstance(value, _DEAD_ENDS) or id(value) in visited:
            continue
        visited.add(id(value))
        kept_alive.append(value)
        queue.extend(_parts(where, path, value))
    return ways, not queue


_DEAD_ENDS = (str, bytes, int, float, complex, bool, type(None), type, types.ModuleType, types.CodeType)


def _parts(where: Where, path: str, value: Any) -> Iterator[Root]:
    """Yield what an object refers to, with the way there."""
    if isinstance(value, dict):
        for key, item in list(value.items()):
            yield where, f"{path}[{key!r}]", item
    elif isinstance(value, (list, tuple, deque)):
        for index, item in enumerate(list(value)):
            yield where, f"{path}[{index}]", item
    elif isinstance(value, (set, frozenset)):
        for item in list(value):
            yield where, f"an item of {path}", item
    elif isinstance(value, types.TracebackType):
        at: types.TracebackType | None = value
        while at is not None:
            if not _is_machinery(at.tb_frame):
                for name, item in list(at.tb_frame.f_locals.items()):
                    yield where, f"{path}: {name} in {at.tb_frame.f_code.co_name}", item
            at = at.tb_next
    elif isinstance(value, types.FunctionType):
        names = value.__code__.co_freevars
        for name, cell in zip(names, value.__closure__ or (), strict=True):
            try:
                yield "closure", f"{name} in {path}", cell.cell_contents
            except ValueError:
                continue  # an empty cell holds nothing
        for item in (*(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()):
            yield where, f"a default of {path}", item
        if (wrapped := getattr(value, "__wrapped__", None)) is not None:
            yield where, path, wrapped
    elif isinstance(value, types.MethodType):
        yield where, f"{path}.__self__", value.__self__
        yield where, path, value.__func__
    elif isinstance(value, types.GeneratorType):
        if value.gi_frame is not None:
            for name, item in list(value.gi_frame.f_locals.items()):
                yield where, f"{name} in the generator {path}", item
    else:
        if isinstance(value, BaseException) and value.__traceback__ is not None:
            yield "traceback", path, value.__traceback__
        for name, item in list(getattr(value, "__dict__", {}).items()):
            yield where, path if name == "__wrapped__" else f"{path}.{name}", item


# -- letting go


@dataclass(frozen=True, slots=True, repr=False)
class LetGo:
    """What `let_go` freed: live bytes before and after, each buffer counted once."""

    before: int
    after: int

    @property
    def freed(self) -> int:
        """Bytes of arrays that are gone."""
        return self.before - self.after

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"freed {written(self.freed)} of arrays, {written(self.after)} still live"


def let_go() -> LetGo:
    """Make the notebook let go of displayed outputs and of the last error, and collect what becomes free.

    Clears `Out` and `_`, `__`, `___`, `_1`, ... with IPython's hidden copies, and the traceback of the last error with
    its frames, in `sys` and in the shell. Variables and what they refer to stay. Call it on the main thread.
    """
    before = live_bytes().bytes
    shell = _shell()
    for name in ("last_traceback", "last_value", "last_exc", "last_type"):
        if hasattr(sys, name):
            setattr(sys, name, None)
    if shell is not None:
        _clear_outputs(shell)
        shell._last_traceback = shell.last_execution_result = None
        for name in ("tb", "etb", "evalue", "etype"):
            if hasattr(shell.InteractiveTB, name):
                setattr(shell.InteractiveTB, name, None)
    gc.collect()
    return LetGo(before, live_bytes().bytes)


def _clear_outputs(shell: Any) -> None:
    outputs = shell.user_ns.get("_oh")
    if isinstance(outputs, dict):
        outputs.clear()
    names = [name for name in shell.user_ns if name in ("_", "__", "___") or (name[:1] == "_" and name[1:].isdecimal())]
    for name in names:
        del shell.user_ns[name]
        shell.user_ns_hidden.pop(name, None)
    for name in ("_", "__", "___"):
        shell.user_ns_hidden.pop(name, None)
        shell.user_ns[name] = ""  # as in a fresh session: IPython shifts these three at each output
        if hasattr(shell.displayhook, name):
            setattr(shell.displayhook, name, "")
