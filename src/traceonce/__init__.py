"""Trace Once: see what JAX traces, compiles and keeps in memory.

Names resolve on first use, so that ``import traceonce`` costs next to nothing and never configures JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceonce.observe import watch as watch
    from traceonce.show import chart as chart
    from traceonce.show import predict as predict
    from traceonce.show import progress as progress

__version__ = "0.1.0"

_HOME = {
    "watch": "traceonce.observe",
    "chart": "traceonce.show",
    "predict": "traceonce.show",
    "progress": "traceonce.show",
}
__all__ = ["__version__", "chart", "predict", "progress", "watch"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'traceonce' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
