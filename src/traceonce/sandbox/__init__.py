"""Child processes under limits.

- `limits`: what a sandbox may use.
- `namespaces`, `root`, `seccomp`, `linux`: the namespaces tier, from the inside.
- `handle`, `watch`: a running sandbox from the outside, and its memory.
- `capped`: a child under a memory cap and a clock, for lessons that kill a process on purpose.

Names resolve on first use: the zygote imports this package too, and needs little of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceonce.sandbox.capped import Ending as Ending
    from traceonce.sandbox.capped import Sample as Sample
    from traceonce.sandbox.capped import run_capped as run_capped

_HOME = dict.fromkeys(("Ending", "Sample", "run_capped"), "traceonce.sandbox.capped")
__all__ = ["Ending", "Sample", "run_capped"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'traceonce.sandbox' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
