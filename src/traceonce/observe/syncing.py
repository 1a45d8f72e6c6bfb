"""Where Python waits for the device: every place at which a value of an array is read, or its end awaited.

JAX's own transfer guard is blind to reads on CPU, because there is nothing to transfer. So the methods of JAX's array type
through which every read goes are wrapped while a block is open, and put back when it is left. What is counted is the read, not
the bytes that move: the same loop has the same counts on every device.
"""

from __future__ import annotations

import html
import sys
import threading
import types
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Literal

import jax

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence

KEPT_SYNCS = 100_000
"""How many syncs a record keeps: the first. Counts go on for ever."""


@dataclass(frozen=True, slots=True)
class HostSync:
    """One moment at which Python needed what the device computes.

    - `kind`: `"read"` for a value that came to the host, `"wait"` for `block_until_ready`.
    - `how`: what asked for it: `float()`, `if`, `print`, `NumPy`, `device_get` …
    - `place`: the line outside of JAX and NumPy that did it: `train.py:12`, or `line 3 of a cell`.
    - `arrays`, `bytes`: how many arrays at once, and their size. A tree that is fetched whole is one sync.
    - `thread`: `threading.get_ident()` of the thread on which it happened.
    """

    kind: Literal["read", "wait"]
    how: str
    place: str
    arrays: int
    bytes: int
    thread: int


class Syncs:
    """The host syncs in a block, and where they came from. Made by `syncs()`.

    **Example**

    ```python
    with syncs() as seen:
        for batch in batches:
            params, loss = step(params, batch)
            print(float(loss))
    print(seen)
    seen.reads
    ```
    """

    def __init__(self) -> None:
        self._kept: list[HostSync] = []
        self._times: Counter[tuple[str, str, str]] = Counter()
        self._sizes: dict[tuple[str, str, str], tuple[int, int]] = {}
        self._lock = threading.Lock()
        self._state = "new"

    def __enter__(self) -> Syncs:
        if self._state != "new":
            raise TraceOnceError("This record was already used for a block: open a new one with syncs().", exit_code=2)
        _HOOKS.open(self)
        self._state = "open"
        return self

    def __exit__(self, *_: object) -> None:
        _HOOKS.close(self)
        self._state = "closed"

    @property
    def reads(self) -> int:
        """How often values came to the host."""
        return self._count("read")

    @property
    def waits(self) -> int:
        """How often the end of a computation was awaited without reading anything."""
        return self._count("wait")

    def _count(self, kind: str) -> int:
        with self._lock:
            return sum(times for (_, _, found), times in self._times.items() if found == kind)

    def __len__(self) -> int:
        """Return how many syncs there were."""
        with self._lock:
            return sum(self._times.values())

    def __bool__(self) -> bool:
        return True  # a record is a record, also while it is empty

    def __iter__(self) -> Iterator[HostSync]:
        """Iterate over the syncs kept, in the order in which they happened: the first 100 000."""
        with self._lock:
            return iter(tuple(self._kept))

    def add(self, sync: HostSync) -> None:
        """Count a sync. Runs on the thread that waited."""
        key = (sync.place, sync.how, sync.kind)
        with self._lock:
            self._times[key] += 1
            arrays, size = self._sizes.get(key, (0, 0))
            self._sizes[key] = (arrays + sync.arrays, size + sync.bytes)
            if len(self._kept) < KEPT_SYNCS:
                self._kept.append(sync)

    # -- how it looks

    _HEAD = ("times", "arrays", "bytes")

    def _rows(self) -> list[tuple[str, str, tuple[int, int, int]]]:
        with self._lock:
            return [(key[0], key[1], (times, *self._sizes[key])) for key, times in self._times.most_common()]

    def __str__(self) -> str:
        rows = self._rows()
        if not rows:
            return "Python waited for the device nowhere"
        wide = [max(len(title), *(len(row[n]) for row in rows)) for n, title in enumerate(("place", "by"))]
        lines = [f"{'place':<{wide[0]}}  {'by':<{wide[1]}}  " + "  ".join(f"{title:>8}" for title in self._HEAD)]
        for place, how, numbers in rows:
            lines.append(f"{place:<{wide[0]}}  {how:<{wide[1]}}  " + "  ".join(f"{number:>8}" for number in numbers))
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = self._rows()
        if not rows:
            return f"<p>{html.escape(str(self))}</p>"
        body = "".join(
            f'<tr><th scope="row" style="text-align:left">{html.escape(place)}</th><td>{html.escape(how)}</td>'
            + "".join(f'<td style="text-align:right">{number}</td>' for number in numbers)
            + "</tr>"
            for place, how, numbers in rows
        )
        head = "".join(f'<th scope="col">{title}</th>' for title in ("place", "by", *self._HEAD))
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def syncs() -> Syncs:
    """Count the moments at which Python waits for the device, in a ``with`` block.

    Seen are `float`, `int`, `bool` and `if`, `print` and f-strings, `.item()`, `.tolist()`, NumPy functions of an array,
    `jax.device_get` and `block_until_ready`, also on arrays that are ready. Not seen are DLPack (PyTorch reads through it),
    constants that a compile takes off the device, and what `jax.debug` callbacks read. Uploads are not counted:
    ``jax.transfer_guard_host_to_device("disallow")`` raises at an implicit one, on CPU too.

    **Raises**: `TraceOnceError` on entering, where this JAX reads its arrays in another way.
    """
    return Syncs()


# The methods that are wrapped -----------------------------------------------------------------------------------------


class _Group:
    """What one `jax.device_get` reads, until it ends."""

    def __init__(self) -> None:
        self.arrays = self.bytes = 0
        self.place: str | None = None


class _Here(threading.local):
    """What is going on in one thread."""

    def __init__(self) -> None:
        self.groups: list[_Group] = []
        self.inside = False  # a wrapped method runs already: what it calls is a part of it


class _Hooks:
    """The wrapped methods, there while at least one record is open."""

    def __init__(self) -> None:
        self._open: tuple[Syncs, ...] = ()
        self._lock = threading.RLock()
        self._here = _Here()
        self._put_back: list[Callable[[], None]] = []

    def open(self, record: Syncs) -> None:
        with self._lock:
            if not self._open:
                self._wrap()
            self._open = (*self._open, record)

    def close(self, record: Syncs) -> None:
        with self._lock:
            self._open = tuple(one for one in self._open if one is not record)
            if not self._open:
                while self._put_back:
                    self._put_back.pop()()

    def _wrap(self) -> None:
        reads = evidence.reading_methods()
        if reads is None:
            raise TraceOnceError(
                f"JAX {jax.__version__} reads its arrays in a way that syncs() does not know: its counts would be wrong. "
                "Use the versions that this package was tested with."
            )
        kind = reads.array
        self._replace(kind, "_value", property(self._value(reads.value)))
        self._replace(kind, "__buffer__", self._buffer(reads.buffer))
        self._replace(kind, "block_until_ready", self._wait(kind.block_until_ready))
        for owner, name in reads.waiting:
            self._replace(owner, name, self._wait(getattr(owner, name)))
        for owner, name in reads.fetching:
            self._replace(owner, name, self._fetch(getattr(owner, name)))

    def _replace(self, owner: Any, name: str, new: Any) -> None:
        old = vars(owner)[name]
        setattr(owner, name, new)
        self._put_back.append(lambda: setattr(owner, name, old))

    def _value(self, real: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def value(array: Any) -> Any:
            here = self._here
            frame = sys._getframe(1)
            how = evidence.reading(frame)
            if here.inside or how is None:
                return real(array)
            here.inside = True
            try:
                result = real(array)
            finally:
                here.inside = False
            self._read(array, how, frame)
            return result

        return value

    def _buffer(self, real: Callable[[Any, int], memoryview]) -> Callable[[Any, int], memoryview]:
        def buffer(array: Any, flags: int) -> memoryview:
            view = real(array, flags)  # raises on a GPU, where NumPy then asks for the value
            if not self._here.inside:
                frame = sys._getframe(1)
                self._read(array, evidence.reading(frame) or "NumPy", frame)
            return view

        return buffer

    def _wait(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def wait(arrays: Any) -> Any:
            result = real(arrays)
            if not self._here.inside:
                several = arrays if isinstance(arrays, list) else [arrays]
                self._add("wait", "block_until_ready", _place(sys._getframe(1)), len(several), _bytes(several))
            return result

        return wait

    def _fetch(self, real: Callable[[], AbstractContextManager[Any]]) -> Callable[[], AbstractContextManager[Any]]:
        hooks = self

        class Fetch:
            """JAX's own scope around one `device_get`, which tells where a tree begins and ends."""

            def __enter__(self) -> Any:
                self.scope, self.group = real(), _Group()
                hooks._here.groups.append(self.group)
                return self.scope.__enter__()

            def __exit__(self, *about: Any) -> Any:
                hooks._here.groups.remove(self.group)
                if (place := self.group.place) is not None:
                    hooks._add("read", "device_get", place, self.group.arrays, self.group.bytes)
                return self.scope.__exit__(*about)

        return Fetch

    def _read(self, array: Any, how: str, frame: types.FrameType) -> None:
        place = _place(frame)
        if place is not None and (groups := self._here.groups):
            groups[-1].place = place
            groups[-1].arrays += 1
            groups[-1].bytes += _bytes([array])
        else:
            self._add("read", how, place, 1, _bytes([array]))

    def _add(self, kind: Literal["read", "wait"], how: str, place: str | None, arrays: int, size: int) -> None:
        if place is not None:
            sync = HostSync(kind, how, place, arrays, size, threading.get_ident())
            for record in self._open:
                record.add(sync)


def _place(frame: types.FrameType | None) -> str | None:
    """The innermost line outside of JAX and NumPy; `None` where JAX itself reads, for a callback."""
    found = evidence.asked_from(frame)
    return None if found is None else evidence.place(*found)


def _bytes(arrays: list[Any]) -> int:
    return sum(array.dtype.itemsize * array.size for array in arrays)


_HOOKS = _Hooks()
