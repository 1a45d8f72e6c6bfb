"""A record that does something at each stage, at once, on the thread that compiled.

`Watch.subscribe` waits for a moment between calls on the main thread, which suits a chart. A program that may be killed at
any time, and a budget that looks at the executable just made, cannot wait. This is the one place outside of
`traceonce.observe` that knows how the monitor hands stages over.
"""

from __future__ import annotations

from traceonce.observe import Event, Watch
from traceonce.observe.history import Compilation
from traceonce.observe.monitor import RawEvent, RunningStage


class StageWatch(Watch):
    """A block whose `on_stage` is called for each trace, lowering and compile that ends."""

    def take_stage(self, running: RunningStage, raw: RawEvent) -> None:
        """Add a stage that has ended."""
        super().take_stage(running, raw)
        self.on_stage(Event(*raw), running.own, running.compilation)

    def on_stage(self, event: Event, own: bool, made: Compilation) -> None:
        """Take in a stage.

        **Arguments**

        - `event`: the stage.
        - `own`: whether the function is not one of JAX's own.
        - `made`: the program that is being made.
        """
        raise NotImplementedError
