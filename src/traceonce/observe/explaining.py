"""`explain`: why something was compiled again."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from traceonce.errors import TraceOnceError
from traceonce.observe import evidence
from traceonce.observe.difference import Change, changes, distance
from traceonce.observe.history import HISTORY, Compilation
from traceonce.observe.records import FunctionKey
from traceonce.observe.signature import Signature

if TYPE_CHECKING:
    from traceonce.observe.watching import Watch
    from traceonce.observe.wrapping import WatchedFunction

REPAIRS: dict[str, str] = {
    "shape": "Each shape is a program of its own: keep one shape (pad and mask, or drop the short batch), or a few.",
    "dtype": "Convert to one dtype before the call, for example with jnp.asarray(x, jnp.float32).",
    "weak": "A Python number or jnp.asarray(1.0) is weakly typed: give the dtype, as in jnp.float32(1.0), from the start.",
    "committed": "device_put commits an array to its device: put first and later arrays through the same device_put.",
    "sharding": "Place the argument the same way on every call: one device_put with one sharding, before the loop.",
    "static": "Each static value is a program of its own: pass a number that changes as an array (jnp.asarray), and give a "
    "settings object an __eq__ and __hash__ by value (a frozen dataclass).",
    "structure": "Build the argument with the same containers each time: a list and a tuple, or another key order of an "
    "OrderedDict, are different trees.",
    "leaf": "Keep the same set of leaves on every call: give a missing one an array with a mask, or a fixed default.",
    "keyword": "Pass the argument the same way on every call: always by position or always by name.",
    "function": "JAX's cache knows a function by its object: define and jit it once, outside the loop, and pass what changes "
    "as an argument.",
    "config": "Settings belong to the cache key: set them once at the start, not around some of the calls.",
    "transform": "Transforming a jitted function makes other programs of it: put jax.jit outside of grad and vmap.",
    "unknown": "Look for jax.clear_caches(), .clear_cache(), or an earlier compile that was not watched.",
}

ASK_JAX = " With jax.config.update('jax_explain_cache_misses', True), JAX's own log is read as well."

Step = Literal["first", "retrace", "recompile", "failed trace"]


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Why one program of a function was made.

    - `number`: which one, from 1, of those seen of this function.
    - `call`: the watched call in which it happened, if one is known.
    - `step`: `first`; `retrace` where the Python body ran again; `recompile` where only the compiler did; or
      `failed trace` where the body raised.
    - `changes`: what differs from the nearest earlier program; empty for the first, or where the cause cannot be seen.
    - `nearest`: the number of the program that it was compared with.
    - `doubt`: what cannot be told, and why; empty where the changes explain the step.
    - `log`: what JAX's own log of cache misses says, where that is on and the changes do not explain the step.
    - `trace_known`: whether JAX would have reported a trace. It reports none of a call under `grad` or `vmap`, and none
      where only another pass is compiled.
    """

    function: FunctionKey
    number: int
    call: int | None
    step: Step
    changes: tuple[Change, ...] = ()
    nearest: int | None = None
    doubt: str = ""
    log: str = ""
    trace_known: bool = True

    @property
    def source(self) -> Literal["signature", "JAX's log", ""]:
        """Where the reason comes from: the two calls compared, or JAX's own log; empty where there is none."""
        if self.log:
            return "JAX's log"
        return "signature" if self.changes and not self.doubt else ""

    @property
    def cause(self) -> str:
        """The kind of change in one word: that of the first change, `first`, or `unknown`."""
        if self.step == "first":
            return "first"
        return self.changes[0].cause if self.changes and not self.doubt else "unknown"

    @property
    def repair(self) -> str:
        """The usual repair, in a sentence or one for each kind of change."""
        if self.step in ("first", "failed trace"):
            return ""
        if self.doubt:
            hint = ASK_JAX if self.step == "retrace" and not self.log else ""
            return REPAIRS["unknown"] + hint if self.nearest is not None else ""
        return " ".join(REPAIRS[cause] for cause in dict.fromkeys(change.cause for change in self.changes))

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        call = "" if self.call is None else f", call {self.call}"
        words = _STEPS[self.step] if self.trace_known else _UNREPORTED
        lines = [f"{self.function.name}, program {self.number}{call}: {words}"]
        if self.nearest is not None and self.changes:
            lines[0] += f" (compared with program {self.nearest})"
        width = max((len(change.cause) for change in self.changes), default=0)
        for change in self.changes[:SHOWN_CHANGES]:
            lines.append(
                f"  {change.cause:<{width}}  {change.path + ': ' * bool(change.path)}{change.old} -> {change.new}"
            )
        if len(self.changes) > SHOWN_CHANGES:
            lines.append(f"  and {len(self.changes) - SHOWN_CHANGES} more changes")
        if self.doubt:
            lines.append(f"  cannot tell{' from the call' * bool(self.log)}: {self.doubt}")
        if self.log:
            lines += [f"  JAX's log says: {self.log.splitlines()[0]}"]
            lines += [f"    {line}" for line in self.log.splitlines()[1 : SHOWN_CHANGES + 1]]
        if self.repair:
            lines.append(f"  {self.repair}")
        return "\n".join(lines)


SHOWN_CHANGES = 8
_STEPS = {
    "first": "the first that was seen",
    "retrace": "traced and compiled again",
    "recompile": "compiled again without a trace",
    "failed trace": "the function raised while it was traced",
}
_UNREPORTED = "compiled again; JAX reports no trace here, whether there was one or not"


@dataclass(frozen=True, slots=True, repr=False)
class Explanations:
    """One explanation for each program that was made, in order. Printing it shows those after the first."""

    all: tuple[Explanation, ...]

    @property
    def again(self) -> tuple[Explanation, ...]:
        """Those that made something again."""
        return tuple(one for one in self.all if one.step in ("retrace", "recompile"))

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self.again)

    def __len__(self) -> int:
        return len(self.again)

    def __getitem__(self, index: int) -> Explanation:
        return self.again[index]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return "\n".join(map(str, self.again)) or "nothing was compiled again"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def explain(seen: Watch | WatchedFunction, function: Any = None) -> Explanations:
    """Say why each program after the first was made: which part of the call differed, old and new, and the usual repair.

    Compares the call's signature with the nearest earlier one of the same function. Where that does not explain what
    JAX did, `doubt` says so; nothing is guessed.

    **Arguments**

    - `seen`: the record of a block, or a watched function.
    - `function`: only this one, by name or by itself.

    **Raises** `TraceOnceError` for anything else.
    """
    record = getattr(seen, "seen", seen)
    compilations = getattr(record, "compilations", None)
    if compilations is None:
        raise TraceOnceError(
            f"explain() takes what `with watch() as seen:` or `watch(fn)` gave, and {seen!r} is neither: watch it first.",
            exit_code=2,
        )
    if function is None and record is not seen:
        function = seen
    chosen = [one for one in compilations if function is None or _is(one.function, function)]
    mine = {id(one) for one in compilations}
    return Explanations(tuple(explanation(one, mine) for one in chosen))


def _is(key: FunctionKey, function: Any) -> bool:
    return key.name == function if isinstance(function, str) else key == evidence.key_of(function)


def explanation(made: Compilation, mine: Collection[int]) -> Explanation:
    """Explain one compilation.

    It is compared with the earlier ones of the same record, and with those of other records only where they are of the
    very same function object: a cell that is run again and defines its function anew begins anew.

    **Arguments**

    - `mine`: the `id` of each compilation in the record that asks.
    """
    earlier = [one for one in HISTORY.before(made) if id(one) in mine or _same_function(one, made)]
    about: dict[str, Any] = {"function": made.function, "number": len(earlier) + 1, "call": made.call}
    if made.failed:
        return Explanation(**about, step="failed trace")
    if not earlier:
        return Explanation(**about, step="first")
    signature = made.signature
    known = made.traced or (signature is not None and not signature.tracers)
    about |= {"step": "retrace" if made.traced else "recompile", "trace_known": known}
    if signature is None:
        return Explanation(**about, doubt=made.unread, log=made.log)
    if all(one.signature is None for one in earlier):
        doubt = "the earlier calls could not be read, so there is none to compare with."
        return Explanation(**about, doubt=doubt, log=made.log)
    nearest, differing = _nearest(signature, earlier, traced=made.traced or not known)
    doubt = "" if differing else _no_difference(made, nearest)
    if differing and made.traced and not any(change.retraces for change in differing):
        doubt = "these changes alone do not make JAX trace again; something outside of the call did."
    elif (
        differing
        and known
        and not made.traced
        and all(change.retraces and change.cause != "transform" for change in differing)
    ):
        doubt = "these changes alone would have made JAX trace again, and it did not: it knew this call from before."
    log = made.log if doubt else ""
    return Explanation(**about, changes=differing, nearest=nearest, doubt=doubt, log=log)


def _same_function(one: Compilation, other: Compilation) -> bool:
    if one.signature is None or other.signature is None:
        return False
    return one.signature.function == other.signature.function


def _nearest(wanted: Signature, earlier: list[Compilation], *, traced: bool) -> tuple[int, tuple[Change, ...]]:
    """Choose the earlier call with the fewest differences, the latest of equals, and return its number and the changes.

    After a recompile without a trace, a call that differs only in what does not retrace comes first.
    """
    known = [(number, one.signature) for number, one in enumerate(earlier, 1) if one.signature is not None]
    scored = sorted(known, key=lambda pair: (distance(pair[1], wanted), -pair[0]))
    candidates = [(number, changes(signature, wanted)) for number, signature in scored[:4]]
    if not traced:
        candidates.sort(key=lambda pair: sum(change.retraces for change in pair[1]))
    return candidates[0]


def _no_difference(made: Compilation, nearest: int) -> str:
    if made.traced:
        return f"the call looks exactly like that of program {nearest}: its cache was cleared, or something changed that a call does not show."
    return f"the call looks exactly like that of program {nearest}, and its trace was still there: it was compiled ahead of time, or for another pass (a gradient), or its executable was dropped."
