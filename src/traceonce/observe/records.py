"""What the observer reports: plain records, without behaviour and without references to arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["trace", "lower", "compile", "call"]


class FunctionKey(NamedTuple):
    """Which function a record belongs to.

    **Arguments**

    - `name`: the name without decoration, `"step"` for `jax.jit(step)`.
    - `file`, `line`: where the function was defined; `None` where JAX's events do not let us know.
    """

    name: str
    file: str | None = None
    line: int | None = None

    @property
    def location(self) -> str | None:
        """`file:line`, or `None` where the place of definition is not known."""
        return None if self.file is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each thing happened, and how long it took in all.

    **Arguments**

    - `calls`: calls of the watched function; `None` where nobody watched it, because JAX reports no calls.
    - `traces`: runs of the Python body with tracers; a trace that raised counts. JAX reports none of a call under `grad`
      or `vmap` from outside `jit`, so those are missing.
    - `lowerings`: translations of a traced function to the compiler's language.
    - `compiles`: executables made by the compiler, or fetched from the persistent cache.
    - `cache_hits`: those of the compiles that the persistent compilation cache answered.
    - `trace_seconds`, `lower_seconds`, `compile_seconds`: the time that each stage took in all.
    """

    calls: int | None = None
    traces: int = 0
    lowerings: int = 0
    compiles: int = 0
    cache_hits: int = 0
    trace_seconds: float = 0.0
    lower_seconds: float = 0.0
    compile_seconds: float = 0.0

    def __add__(self, other: Counts) -> Counts:
        """Add two counts; calls stay unknown only where both are unknown."""
        known = [calls for calls in (self.calls, other.calls) if calls is not None]
        return Counts(
            calls=sum(known) if known else None,
            traces=self.traces + other.traces,
            lowerings=self.lowerings + other.lowerings,
            compiles=self.compiles + other.compiles,
            cache_hits=self.cache_hits + other.cache_hits,
            trace_seconds=self.trace_seconds + other.trace_seconds,
            lower_seconds=self.lower_seconds + other.lower_seconds,
            compile_seconds=self.compile_seconds + other.compile_seconds,
        )


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    **Arguments**

    - `kind`: `"trace"`, `"lower"`, `"compile"`, or `"call"` (watched functions only).
    - `function`: whose it was.
    - `at`: when it began, on the clock of `time.perf_counter`, in seconds.
    - `seconds`: how long it took. For a call this is the time until the call returned; JAX may still be computing.
    - `call`: for a call, its number since the function was watched, from 1.
    - `traces`, `compiles`: for a call, how many happened inside it, its own and those of functions that it called.
    - `failed`: it ended with an exception.
    - `cache_hit`: a compile that the persistent cache answered.
    - `thread`: `threading.get_ident()` of the thread on which it happened.
    """

    kind: Kind
    function: FunctionKey
    at: float
    seconds: float
    call: int | None = None
    traces: int = 0
    compiles: int = 0
    failed: bool = False
    cache_hit: bool = False
    thread: int = 0

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.function.name
