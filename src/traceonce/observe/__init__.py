"""See what JAX does with your functions: traces, compiles and memory, as plain records.

Imports neither Jupyter nor the grading extras, and changes no JAX configuration.
"""

from traceonce.observe.difference import Change as Change
from traceonce.observe.explaining import Explanation as Explanation
from traceonce.observe.explaining import Explanations as Explanations
from traceonce.observe.explaining import explain as explain
from traceonce.observe.holding import Held as Held
from traceonce.observe.holding import Holder as Holder
from traceonce.observe.holding import LetGo as LetGo
from traceonce.observe.holding import holders as holders
from traceonce.observe.holding import largest as largest
from traceonce.observe.holding import let_go as let_go
from traceonce.observe.keys import KeyUse as KeyUse
from traceonce.observe.keys import KeyUses as KeyUses
from traceonce.observe.keys import key_uses as key_uses
from traceonce.observe.memory import DeviceMemory as DeviceMemory
from traceonce.observe.memory import LiveBytes as LiveBytes
from traceonce.observe.memory import MemorySample as MemorySample
from traceonce.observe.memory import MemoryWatch as MemoryWatch
from traceonce.observe.memory import live_bytes as live_bytes
from traceonce.observe.memory import rss as rss
from traceonce.observe.memory import sample as sample
from traceonce.observe.memory import watch_memory as watch_memory
from traceonce.observe.planning import Plan as Plan
from traceonce.observe.planning import PlanComparison as PlanComparison
from traceonce.observe.planning import plan as plan
from traceonce.observe.records import Counts as Counts
from traceonce.observe.records import Event as Event
from traceonce.observe.records import FunctionKey as FunctionKey
from traceonce.observe.staleness import Captured as Captured
from traceonce.observe.staleness import Staleness as Staleness
from traceonce.observe.staleness import stale as stale
from traceonce.observe.syncing import HostSync as HostSync
from traceonce.observe.syncing import Syncs as Syncs
from traceonce.observe.syncing import syncs as syncs
from traceonce.observe.watching import Watch as Watch
from traceonce.observe.wrapping import WatchedFunction as WatchedFunction
from traceonce.observe.wrapping import watch as watch

__all__ = [
    "Captured",
    "Change",
    "Counts",
    "DeviceMemory",
    "Event",
    "Explanation",
    "Explanations",
    "FunctionKey",
    "Held",
    "Holder",
    "HostSync",
    "KeyUse",
    "KeyUses",
    "LetGo",
    "LiveBytes",
    "MemorySample",
    "MemoryWatch",
    "Plan",
    "PlanComparison",
    "Staleness",
    "Syncs",
    "Watch",
    "WatchedFunction",
    "explain",
    "holders",
    "key_uses",
    "largest",
    "let_go",
    "live_bytes",
    "plan",
    "rss",
    "sample",
    "stale",
    "syncs",
    "watch",
    "watch_memory",
]
