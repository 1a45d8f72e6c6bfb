"""See what JAX does with your functions: traces, compiles and memory, as plain records.

Imports neither Jupyter nor the grading extras, and changes no JAX configuration.
"""

from traceonce.observe.records import Counts as Counts
from traceonce.observe.records import Event as Event
from traceonce.observe.records import FunctionKey as FunctionKey
from traceonce.observe.watching import Watch as Watch
from traceonce.observe.wrapping import WatchedFunction as WatchedFunction
from traceonce.observe.wrapping import watch as watch

__all__ = ["Counts", "Event", "FunctionKey", "Watch", "WatchedFunction", "watch"]
