"""The report as a table of plain text, for a terminal or a log."""

from __future__ import annotations

import os
from collections.abc import Iterator

from traceonce.run.report import Function, Reason, Report, Where

_FUNCTIONS = 30
_EXPLAINED = 12
_HELPERS = 4
_KINDS_OF_ONE = 2
_NAME = 40
_HEAD = ("calls", "traces", "compiles", "from cache", "seconds")


def text(report: Report) -> str:
    """Write a report in lines of its own, each of which a reader can tell from the program's output."""
    return "\n".join(["", *_summary(report), *_table(report), *_reasons(report)])


def headline(report: Report) -> str:
    """What ran, for how long, and how much memory it took."""
    command = " ".join(report.command)
    parts = [f"{report.seconds:.1f} s"]
    if report.peak is not None:
        parts.append(f"peak memory {'' if report.complete else 'at least '}{_size(report.peak)}")
    if report.children_peak:
        parts.append(f"its largest child process {_size(report.children_peak)}")
    parts += [f"{name} peak {_size(peak)}" for name, peak in report.devices]
    if report.jax is not None:
        parts.append(f"JAX {report.jax}")
    return f"{command}: {', '.join(parts)}"


def findings(report: Report) -> Iterator[str]:
    """The sentences above the table."""
    if not report.complete:
        yield "The program ended without its exit handlers, by a signal or os._exit: this is what was seen until then."
    yield from (f"Not observed: {trouble}." for trouble in report.troubles)
    if report.jax is None:
        yield "The program did not import JAX in this process, so there is nothing to count."
        return
    if not report.functions and not report.helpers.compiles and not report.troubles:
        yield "The program imported JAX and compiled nothing."
        return
    if report.busy:
        share = f" ({100 * report.busy / report.seconds:.0f} % of the run)" if report.seconds else ""
        yield f"Tracing, lowering and compiling took {report.busy:.2f} s{share}."
    helpers = report.helpers
    if helpers.compiles:
        names = ", ".join(f"{name} {count}" for name, count in report.helper_names[:_HELPERS])
        more = ", ..." if len(report.helper_names) > _HELPERS else ""
        yield (
            f"JAX's own operations outside of a jitted function (such as jnp.ones or x + 1): "
            f"{_times(helpers.compiles, 'compile')}, {helpers.seconds:.2f} s ({names}{more})."
        )


def _summary(report: Report) -> Iterator[str]:
    yield f"traceonce run: {headline(report)}"
    yield from findings(report)


def _table(report: Report) -> Iterator[str]:
    if not report.functions:
        return
    shown = report.functions[:_FUNCTIONS]
    rows = [(_short(function.name), _cells(function), _place(report, function.location)) for function in shown]
    width = max(len("function"), *(len(name) for name, _, _ in rows))
    yield ""
    yield f"{'function':<{width}}  {'  '.join(_HEAD)}  where"
    for name, cells, place in rows:
        numbers = "  ".join(f"{cell:>{len(head)}}" for cell, head in zip(cells, _HEAD, strict=True))
        yield f"{name:<{width}}  {numbers}  {place}"
    if len(report.functions) > len(shown):
        rest = report.functions[len(shown) :]
        yield f"and {len(rest)} more functions, {sum(function.seconds for function in rest):.2f} s"
    if any(function.calls is None for function in report.functions):
        yield "calls: JAX reports none of a function that the program does not watch()."


def _cells(function: Function) -> tuple[str, ...]:
    calls = "-" if function.calls is None else str(function.calls)
    counts = (function.traces, function.compiles, function.cache_hits)
    return (calls, *map(str, counts), f"{function.seconds:.2f}")


def _reasons(report: Report) -> Iterator[str]:
    if not report.reasons:
        return
    yield ""
    yield "made again:"
    order = [(function.name, function.location) for function in report.functions]
    wheres = sorted(report.reasons, key=lambda where: order.index(where) if where in order else len(order))
    for where in wheres[:_EXPLAINED]:
        yield from _of_one(report, where)
    if len(wheres) > _EXPLAINED:
        yield f"and {len(wheres) - _EXPLAINED} more functions"


def _of_one(report: Report, where: Where) -> Iterator[str]:
    """The first reason of each kind, the commonest kinds first, and how many more there were."""
    counts = dict(report.kinds[where])
    first: dict[tuple[str, ...], Reason] = {}
    for reason in report.reasons[where]:
        first.setdefault(reason.kind, reason)
    kinds = sorted(first, key=lambda kind: -counts[kind])
    for kind in kinds[:_KINDS_OF_ONE]:
        yield from first[kind].text.splitlines()
        if counts[kind] > 1:
            yield f"  and {_times(counts[kind] - 1, 'more time')} the same kind"
    rest = sum(counts.values()) - sum(counts[kind] for kind in kinds[:_KINDS_OF_ONE])
    if rest:
        yield f"  {where[0]}: {_times(rest, 'more time')} for other reasons (all of them with --json or --html)"


def _times(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _short(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 3] + "..."


def _place(report: Report, location: str | None) -> str:
    return place(report.folder, location)


def place(folder: str, location: str | None) -> str:
    """Where a function was defined, as short as it is clear: within the folder, or from its package on."""
    if location is None:
        return "?"
    for start in ("site-packages", "dist-packages"):
        _, found, rest = location.partition(f"{os.sep}{start}{os.sep}")
        if found:
            return rest
    inside = folder.rstrip(os.sep) + os.sep
    return location.removeprefix(inside)


def _size(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 else f"{count / 2**20:.0f} MiB"
