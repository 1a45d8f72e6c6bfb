"""How a chart reaches the notebook: at most ten messages a second, and the last state always."""

from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from traceonce.show.widgets import ChartWidget

MESSAGE_SECONDS = 0.1
"""Jupyter drops messages that come too fast; ten a second is also what an eye can follow."""

COMMIT_SECONDS = 1.0
"""A view that was drawn late has missed the messages before it. It begins with what was committed last."""


class Feed(Protocol):
    """What a chart shows."""

    def state(self) -> dict[str, Any]: ...

    def changes(self) -> dict[str, Any]: ...


class Wire:
    """Sends a feed to its widget. Everything here runs on the main thread, between two calls of the learner's."""

    def __init__(self, feed: Feed, widget: "ChartWidget") -> None:
        self._feed = feed
        self._widget = widget
        self._sent = self._committed = perf_counter()

    def touch(self) -> None:
        """Something changed: send it, unless the last message is less than a tenth of a second old."""
        now = perf_counter()
        if now - self._sent < MESSAGE_SECONDS:
            return
        self._sent = now
        if now - self._committed < COMMIT_SECONDS:
            self._widget.send(self._feed.changes())
        else:
            self._committed = now
            self._commit(done=False)

    def finish(self) -> None:
        """Commit the last state, which is also what is saved with the notebook."""
        self._sent = self._committed = perf_counter()
        self._commit(done=True)

    def _commit(self, *, done: bool) -> None:
        self._feed.changes()  # they are part of the state: the next message must not repeat them
        self._widget.state = self._feed.state() | {"done": done}
