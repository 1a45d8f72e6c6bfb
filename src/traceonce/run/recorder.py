"""In the program's process, once JAX is there: a `Watch` that tells each thing as it happens.

Told at once and not at the end, so that a program that is killed has told what it did until then.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import asdict

from traceonce.observe import Event, FunctionKey
from traceonce.observe.explaining import explanation
from traceonce.observe.history import Compilation
from traceonce.observe.memory import device_memory
from traceonce.run.stages import StageWatch

_EVERYTHING = range(sys.maxsize)
"""Contains the `id` of every object: all programs of this process belong to this record."""


class Recorder(StageWatch):
    """A record of the whole process that sends each stage, and why it happened again, when it ends.

    **Arguments**

    - `send`: takes a message as keyword arguments.
    - `began`: when the program began, on the clock of `time.perf_counter`.
    """

    def __init__(self, send: Callable[..., None], began: float) -> None:
        super().__init__()
        self._send = send
        self._began = began
        self._told: dict[FunctionKey, Compilation] = {}

    def on_stage(self, event: Event, own: bool, made: Compilation) -> None:
        """Send a stage."""
        self._send(
            kind="stage",
            stage=event.kind,
            name=event.name,
            location=event.function.location,
            own=own,
            at=event.at - self._began,
            seconds=event.seconds,
            failed=event.failed,
            cache_hit=event.cache_hit,
            thread=event.thread,
        )
        if own and (event.failed or event.kind != "lower") and self._told.get(event.function) is not made:
            self._told[event.function] = made
            self._tell_why(made)

    def _tell_why(self, made: Compilation) -> None:
        try:
            why = explanation(made, _EVERYTHING)
        except Exception as error:  # noqa: BLE001 - this runs inside JAX's compile; the program must not fail by it
            self._send(kind="trouble", text=f"why {made.function.name} was made again could not be told: {error!r}")
            return
        if why.step == "first":
            return
        self._send(
            kind="why",
            name=made.function.name,
            location=made.function.location,
            number=why.number,
            step=why.step,
            cause=why.cause,
            nearest=why.nearest,
            changes=[asdict(change) for change in why.changes],
            repair=why.repair,
            doubt=why.doubt,
            text=str(why),
        )

    def tell_calls(self) -> None:
        """Send the number of calls of the functions that the program watches itself: of others nobody knows it."""
        for key, counts in self.items():
            if counts.calls is not None:
                self._send(kind="calls", name=key.name, location=key.location, calls=counts.calls)

    def tell_devices(self) -> None:
        """Send the peak of each device that counts its memory. Starts no backend that the program did not start."""
        from jax._src import xla_bridge

        if xla_bridge.backends_are_initialized():
            for device in device_memory():
                if device.peak is not None:
                    self._send(kind="device", name=device.device, peak=device.peak)
