"""Where output goes: a Jupyter kernel's front end, or plain Python's standard output."""

import sys
from typing import Any, Protocol

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def kernel_shell() -> Any | None:
    """The running IPython shell if it belongs to a Jupyter kernel, else None (plain Python, IPython in a terminal)."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


class Panel(Protocol):
    """What is shown as a piece of HTML where widgets live, and printed elsewhere."""

    def html(self) -> str:
        """The panel."""


def show_panel(panel: Panel, text: str) -> None:
    """Show a panel in the notebook, or print it in plain Python.

    `text` stands for it in the stored output. It says nothing of the learner, so that the stored output compares.
    """
    if kernel_shell() is None:
        print(panel)
        return
    from traceonce.show.widgets import PanelWidget

    publish(text, model_id=PanelWidget(html=panel.html()).model_id)


def publish(text: str, *, model_id: str | None = None, svg: str | None = None) -> None:
    """Send one output to the notebook.

    **Arguments**

    - `text`: what stands for it where no widget can be drawn: an untrusted notebook, a code-hosting page, nbval.
    - `model_id`: the widget to draw; `""` draws nothing where widgets live, and leaves the text and the picture elsewhere.
    - `svg`: a still picture for places that draw pictures and no widgets.
    """
    from IPython.display import publish_display_data

    data: dict[str, Any] = {"text/plain": text}
    if svg is not None:
        data["image/svg+xml"] = svg
    if model_id is not None:
        data[WIDGET_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": model_id}
    publish_display_data(data)
