"""Grading untrusted notebooks: observe in the sandbox, judge outside.

- `lab`: a lab and what a submission holds of it.
- `batch`: many submissions, their records and reports. `supervisor`, `zygote`, `child`, `judge`: the processes.
- `wire`, `values`: what the judge and the child say to each other.
- `hidden`: what a file of hidden asserts imports.

Nothing is imported before it is used: the zygote imports this package too.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceonce.grade.batch import Work as Work
    from traceonce.grade.batch import grade_paths as grade_paths
    from traceonce.grade.batch import grade_submissions as grade_submissions

_HOME = dict.fromkeys(("Work", "grade_paths", "grade_submissions"), "traceonce.grade.batch")
__all__ = ["Work", "grade_paths", "grade_submissions"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'traceonce.grade' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
