"""See what JAX does with your functions: traces, compiles and memory, as plain records.

Imports neither Jupyter nor the grading extras, and changes no JAX configuration.
"""

from traceonce.observe.difference import Change as Change
from traceonce.observe.explain import Explanation as Explanation
from traceonce.observe.explain import Explanations as Explanations
from traceonce.observe.explain import explain as explain
from traceonce.observe.records import Counts as Counts
from traceonce.observe.records import Event as Event
from traceonce.observe.records import FunctionKey as FunctionKey
from traceonce.observe.watching import Watch as Watch
from traceonce.observe.wrapping import WatchedFunction as WatchedFunction
from traceonce.observe.wrapping import watch as watch

__all__ = [
    "Change",
    "Counts",
    "Event",
    "Explanation",
    "Explanations",
    "FunctionKey",
    "Watch",
    "WatchedFunction",
    "explain",
    "watch",
]
