"""The log of one watched function's calls, made to cost next to nothing while nothing compiles.

A steady call appends one small tuple to its function's log and looks at two flags. Whoever wants to know (a block, a
chart) reads the log later. References to arguments are never kept.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Iterator
from typing import Any

from traceonce.observe.records import FunctionKey

KEPT_CALLS = 100_000
"""How many calls a log keeps: the newest. The number of calls goes on for ever."""

Entry = tuple[int, float, float, int, int, int, bool]
"""number of the call from 1, start, end, thread, traces, compiles, failed"""


class CallLog:
    """The calls of one watched function, numbered from 1."""

    __slots__ = ("__weakref__", "entries", "key", "numbers")

    def __init__(self, key: FunctionKey) -> None:
        self.key = key
        self.numbers = itertools.count(1)
        self.entries: deque[Entry] = deque(maxlen=KEPT_CALLS)

    def total(self) -> int:
        """Return how many calls there were."""
        # Two threads may append in another order than they took their numbers, so the last entry need not be the highest.
        return max((entry[0] for entry in itertools.islice(reversed(self.entries), 64)), default=0)

    def after(self, number: int) -> list[Entry]:
        """Return the kept calls with a higher number than `number`."""
        return [entry for entry in tuple(self.entries) if entry[0] > number]

    def start_after(self, number: int) -> float:
        """Return when the first kept call after `number` began; infinity without one. Looks at few entries."""
        entries = self.entries
        if not entries:
            return float("inf")
        # Numbers are handed out in order and appended nearly in order, so the place can be computed.
        first = max(0, number + 1 - entries[0][0])
        return min(
            (entry[1] for entry in itertools.islice(entries, first, first + 8) if entry[0] > number), default=0.0
        )

    def raw(self, entry: Entry) -> tuple[Any, ...]:
        """Return an entry as the fields of an `Event`."""
        number, start, end, thread, traces, compiles, failed = entry
        return ("call", self.key, start, end - start, number, traces, compiles, failed, False, thread)


class _Logs:
    """The logs of all watched functions that are alive."""

    def __init__(self) -> None:
        self._references: set[weakref.ref[CallLog]] = set()
        self._lock = threading.Lock()

    def add(self, log: CallLog) -> None:
        with self._lock:
            self._references.add(weakref.ref(log, self._forget))

    def _forget(self, reference: weakref.ref[Any]) -> None:
        # Runs whenever the collector likes, also while this thread holds the lock: a set's discard needs none.
        self._references.discard(reference)

    def __iter__(self) -> Iterator[CallLog]:
        with self._lock:
            alive = [reference() for reference in tuple(self._references)]
        return iter([log for log in alive if log is not None])

    def watches(self, key: FunctionKey) -> bool:
        """Tell whether somebody watches the function with this key."""
        return any(log.key == key for log in self)


LOGS = _Logs()
