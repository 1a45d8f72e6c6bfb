"""The log of one watched function's calls, made to cost next to nothing while nothing compiles.

A steady call appends one small tuple to its function's log and looks at two flags. Whoever wants to know (a block, a
chart) reads the log later. References to arguments are never kept.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from typing import Any

from traceonce.observe.records import FunctionKey

KEPT_CALLS = 100_000
"""How many calls a log keeps: the newest. The number of calls goes on for ever."""
TRIMMED_CALLS = 10_000
"""How many more it may hold for a while, so that throwing the oldest away is rare."""

Entry = tuple[float, float, int] | tuple[float, float, int, int, int, bool]
"""start, end, thread; and, where something happened during the call, traces, compiles, failed"""


class CallLog:
    """The calls of one watched function, numbered from 1 in the order in which they ended.

    A call's number is not stored: it is the entry's place, and `_dropped` entries were before the first one kept.
    Appending to `entries` takes no lock, so that the steady call pays for nothing else.
    """

    __slots__ = ("__weakref__", "_dropped", "_lock", "entries", "key")

    def __init__(self, key: FunctionKey) -> None:
        self.key = key
        self.entries: list[Entry] = []
        self._dropped = 0
        self._lock = threading.Lock()

    def keep(self, entry: Entry) -> int:
        """Append a call and return its number; throws away the oldest where there are too many."""
        entries = self.entries
        with self._lock:
            entries.append(entry)
            place = len(entries) - 1
            while entries[place] is not entry:  # another thread has appended meanwhile
                place -= 1
            number = self._dropped + place + 1
            if len(entries) > KEPT_CALLS + TRIMMED_CALLS:
                surplus = len(entries) - KEPT_CALLS
                del entries[:surplus]
                self._dropped += surplus
        return number

    def total(self) -> int:
        """Return how many calls there were."""
        with self._lock:
            return self._dropped + len(self.entries)

    def after(self, number: int) -> list[tuple[int, Entry]]:
        """Return the kept calls with a higher number than `number`, each with its own."""
        with self._lock:
            entries, dropped = self.entries[-KEPT_CALLS:], self._dropped + max(0, len(self.entries) - KEPT_CALLS)
        first = max(0, number - dropped)
        return list(enumerate(entries[first:], dropped + first + 1))

    def start_after(self, number: int) -> float:
        """Return when the first kept call after `number` began; infinity without one. Looks at few entries."""
        with self._lock:
            first = max(0, number - self._dropped)
            return min((entry[0] for entry in self.entries[first : first + 8]), default=float("inf"))

    def raw(self, number: int, entry: Entry) -> tuple[Any, ...]:
        """Return an entry as the fields of an `Event`."""
        start, end, thread, *rest = entry
        traces, compiles, failed = rest or (0, 0, False)
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
