"""Trace Once: see what JAX traces, compiles and keeps in memory.

Names resolve on first use, so that ``import traceonce`` costs next to nothing and never configures JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceonce.observe import explain as explain
    from traceonce.observe import holders as holders
    from traceonce.observe import key_uses as key_uses
    from traceonce.observe import let_go as let_go
    from traceonce.observe import plan as plan
    from traceonce.observe import stale as stale
    from traceonce.observe import syncs as syncs
    from traceonce.observe import watch as watch
    from traceonce.observe import watch_memory as watch_memory
    from traceonce.show import chart as chart
    from traceonce.show import layout as layout
    from traceonce.show import predict as predict
    from traceonce.show import progress as progress

__version__ = "0.1.0"

_HOME = {
    "explain": "traceonce.observe",
    "holders": "traceonce.observe",
    "key_uses": "traceonce.observe",
    "let_go": "traceonce.observe",
    "load_ipython_extension": "traceonce.observe.magic",
    "plan": "traceonce.observe",
    "stale": "traceonce.observe",
    "syncs": "traceonce.observe",
    "unload_ipython_extension": "traceonce.observe.magic",
    "watch": "traceonce.observe",
    "watch_memory": "traceonce.observe",
    "chart": "traceonce.show",
    "layout": "traceonce.show",
    "predict": "traceonce.show",
    "progress": "traceonce.show",
}
__all__ = [
    "__version__",
    "chart",
    "explain",
    "holders",
    "layout",
    "let_go",
    "plan",
    "predict",
    "progress",
    "stale",
    "watch",
    "watch_memory",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'traceonce' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
