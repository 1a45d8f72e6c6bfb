"""What was traced and compiled for each function, in order: what a new compile is compared with.

Kept for the whole process while anything is watched, because JAX's caches live as long: a block opened later can name
what an earlier block has seen.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from dataclasses import dataclass

from traceonce.observe.records import FunctionKey
from traceonce.observe.signature import Signature

KEPT_FUNCTIONS = 512
KEPT_COMPILATIONS = 256


@dataclass(slots=True)
class Compilation:
    """One attempt to make a program of a function: a trace, a compile, or both.

    - `number`: 1 for the first that was seen of this function.
    - `call`: the number of the watched call in which it happened; `None` outside of one.
    - `signature`: what the call looked like; `None` where it could not be read, and then `unread` says why.
    - `own`: whether it is a function of the user's, and not one of JAX's helpers.
    - `log`: what JAX's own log of cache misses says of its trace; empty where that log is off.
    - `traced`, `compiled`, `failed`, `cached`: what happened; `cached` marks a call that needed neither, seen first.
    """

    function: FunctionKey
    number: int
    at: float
    call: int | None
    signature: Signature | None
    unread: str = ""
    traced: bool = False
    lowered: bool = False
    compiled: bool = False
    cache_hit: bool = False
    failed: bool = False
    cached: bool = False
    own: bool = True
    log: str = ""


class History:
    """The newest compilations of each function, at most 256 of each of 512 functions."""

    def __init__(self) -> None:
        self._of: OrderedDict[FunctionKey, deque[Compilation]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, compilation: Compilation) -> None:
        """Append a compilation and give it its number."""
        key = compilation.function
        with self._lock:
            kept = self._of.get(key)
            if kept is None:
                kept = self._of[key] = deque(maxlen=KEPT_COMPILATIONS)
                if len(self._of) > KEPT_FUNCTIONS:
                    self._of.popitem(last=False)
            elif len(self._of) == KEPT_FUNCTIONS:
                self._of.move_to_end(key)
            compilation.number = kept[-1].number + 1 if kept else 1
            kept.append(compilation)

    def before(self, compilation: Compilation) -> list[Compilation]:
        """Return the earlier ones of the same function that succeeded, oldest first."""
        with self._lock:
            kept = list(self._of.get(compilation.function, ()))
        return [one for one in kept if one.number < compilation.number and not one.failed]

    def knows(self, compilation: Compilation) -> bool:
        """Tell whether a program with the same signature has been seen of the same function."""
        with self._lock:
            kept = list(self._of.get(compilation.function, ()))
        return any(one.signature == compilation.signature for one in kept)

    def __contains__(self, key: FunctionKey) -> bool:
        return key in self._of

    def clear(self) -> None:
        """Forget everything: for a process that starts over, and for tests."""
        with self._lock:
            self._of.clear()


HISTORY = History()
