"""The widgets: traits in Python, drawing in `static/`. Importing this module imports Jupyter's widget machinery."""

from pathlib import Path

import anywidget
import traitlets

_STATIC = Path(__file__).parent / "static"


def _source(name: str) -> str:
    # Read as text, not handed over as a path: anywidget would watch the file from a thread.
    return (_STATIC / name).read_text(encoding="utf-8")


class PredictionWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """A question with radio buttons. The front end sets `answer`; Python sets everything else.

    `code` stands under the question, `next` after an answer; `locked` says that the answer can no longer change.
    """

    _esm = _source("prediction.js")
    _css = _source("traceonce.css")

    key = traitlets.Unicode().tag(sync=True)
    title = traitlets.Unicode().tag(sync=True)
    code = traitlets.Unicode("").tag(sync=True)
    next = traitlets.Unicode("").tag(sync=True)
    locked = traitlets.Bool(False).tag(sync=True)
    question = traitlets.Unicode().tag(sync=True)
    choices = traitlets.List(traitlets.Unicode()).tag(sync=True)
    answer = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    measured = traitlets.Unicode(None, allow_none=True).tag(sync=True)
    verdict = traitlets.Unicode("").tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)


class VerdictWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """What became of a prediction, shown where the evidence is. `outcome` is `as`, `other` or `none`."""

    _esm = _source("verdict.js")
    _css = _source("traceonce.css")

    outcome = traitlets.Unicode().tag(sync=True)
    verdict = traitlets.Unicode().tag(sync=True)
    note = traitlets.Unicode("").tag(sync=True)


class PanelWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """A piece of HTML that Python wrote and escaped."""

    _esm = _source("panel.js")
    _css = _source("traceonce.css")

    html = traitlets.Unicode().tag(sync=True)


class ChartWidget(anywidget.AnyWidget):  # type: ignore[misc]
    """A chart. `state` is what is saved; between two commits the news come as custom messages."""

    _esm = "".join(map(_source, ("drawing.js", "calls.js", "timeline.js", "bars.js", "chart.js")))
    _css = _source("traceonce.css")

    state = traitlets.Dict().tag(sync=True)
