"""Ending a batch on request: an interrupt, a polite kill, a terminal that went away."""

import signal
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager

from traceonce.errors import TraceOnceError

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stopped(TraceOnceError):
    """Somebody asked for the end. The exit code is the one that a shell gives for that signal."""

    def __init__(self, number: int) -> None:
        name = signal.Signals(number).name
        super().__init__(
            f"Stopped by {name}: finished records are kept, and the same command goes on from here.",
            exit_code=128 + number,
        )


class Stop:
    """Turns the signals into `Stopped`, and only while the grader waits: what it is writing is written to its end."""

    def __init__(self) -> None:
        self._waiting = False
        self._asked = 0

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """A stretch that may be left at any point. **Raises**: `Stopped`, also for a signal that came before."""
        self._waiting = True
        try:
            if self._asked:
                raise Stopped(self._asked)
            yield
        finally:
            self._waiting = False

    def heard(self, number: int, _frame: types.FrameType | None) -> None:
        """Be the handler of a signal."""
        self._asked = self._asked or number
        if self._waiting:
            self._waiting = False  # one exception is enough: a second would break what cleans up after the first
            raise Stopped(self._asked)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """A `Stop` that hears the signals until the block is left. One that is ignored stays ignored (`nohup`).

    Only the main thread hears signals; elsewhere nothing is changed.
    """
    stop = Stop()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, stop.heard)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
