"""Where output goes: a Jupyter kernel's front end, or plain Python's standard output."""

import sys
from typing import Any

WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def kernel_shell() -> Any | None:
    """The running IPython shell if it belongs to a Jupyter kernel, else None (plain Python, IPython in a terminal)."""
    if "IPython" not in sys.modules:
        return None
    from IPython import get_ipython

    shell = get_ipython()
    return shell if getattr(shell, "kernel", None) is not None else None


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
