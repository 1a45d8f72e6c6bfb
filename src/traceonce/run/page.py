"""The report as one HTML file: no script, no address, nothing to load; light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from traceonce.run.report import Function, Report, Stage
from traceonce.run.text import findings, headline, place

_STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --paper: #ffffff; --band: #f6f8fa;
  --trace: #0a5fb4; --lower: #7a4fb5; --compile: #b35900; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --soft: #9da7b3; --line: #3d444d; --paper: #0d1117;
  --band: #161b22; --trace: #6cb6ff; --lower: #c297ff; --compile: #f0a35e; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 70rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:last-child, th:last-child { text-align: left; } thead th { background: var(--band); }
td:last-child, .soft { color: var(--soft); } code, pre { font: 14px/1.45 ui-monospace, monospace; }
pre { background: var(--band); border: 1px solid var(--line); padding: .6rem .8rem; overflow-x: auto; margin: .5rem 0; }
details { margin: .4rem 0; } summary { cursor: pointer; } svg { width: 100%; height: auto; display: block; }
svg text { fill: var(--soft); font: 12px system-ui, sans-serif; } .axis { stroke: var(--line); }
.trace { fill: var(--trace); } .lower { fill: var(--lower); } .compile { fill: var(--compile); }
"""
_LANES = ("trace", "lower", "compile")
_NOUNS = {"trace": "trace", "lower": "lowering", "compile": "compile"}
_WIDTH, _LEFT, _LANE = 1000, 70, 26
_DRAWN = 3000
"""Marks in the picture. Beyond that the shortest stages would lie on top of each other anyway."""


def page(report: Report) -> str:
    """Write a report as a complete HTML document."""
    title = escape(headline(report))
    body = [f"<h1>traceonce run: {title}</h1>"]
    body += [f"<p>{escape(sentence)}</p>" for sentence in findings(report)]
    body += [*_functions(report), *_picture(report), *_reasons(report)]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n" + "\n".join(body) + "\n</body></html>\n"
    )


def _functions(report: Report) -> Iterator[str]:
    if not report.functions:
        return
    yield "<h2>Functions</h2>"
    heads = (
        "function",
        "calls",
        "traces",
        "lowerings",
        "compiles",
        "from cache",
        "trace s",
        "lower s",
        "compile s",
        "where",
    )
    yield '<div class="wide" tabindex="0"><table><thead><tr>'
    yield "".join(f'<th scope="col">{head}</th>' for head in heads) + "</tr></thead><tbody>"
    yield from (_row(report, function) for function in report.functions)
    yield "</tbody></table></div>"
    if any(function.calls is None for function in report.functions):
        yield '<p class="soft">calls: JAX reports none of a function that the program does not watch().</p>'


def _row(report: Report, function: Function) -> str:
    calls = "-" if function.calls is None else str(function.calls)
    cells = [calls, *map(str, (function.traces, function.lowerings, function.compiles, function.cache_hits))]
    cells += [
        f"{seconds:.2f}" for seconds in (function.trace_seconds, function.lower_seconds, function.compile_seconds)
    ]
    cells.append(f"<code>{escape(place(report.folder, function.location))}</code>")
    return f'<tr><th scope="row">{escape(function.name)}</th>' + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>"


def _picture(report: Report) -> Iterator[str]:
    if not report.stages:
        return
    total = max(report.seconds, max(stage.at + stage.seconds for stage in report.stages))
    drawn = sorted(sorted(report.stages, key=lambda stage: -stage.seconds)[:_DRAWN], key=lambda stage: stage.at)
    longest = max(report.stages, key=lambda stage: stage.seconds)
    said = (
        f"{len(report.stages)} stages in {total:.1f} s; the longest, {longest.seconds:.2f} s, "
        f"is the {_NOUNS[longest.stage]} of {longest.name} at {longest.at:.1f} s."
    )
    height = _LANE * len(_LANES) + 24
    yield "<h2>When</h2>"
    yield f"<p>{escape(said)} Point at a mark for its function.</p>"
    yield f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(said, quote=True)}">'
    for lane, name in enumerate(_LANES):
        middle = lane * _LANE + _LANE / 2
        yield f'<text x="0" y="{middle + 4:.0f}">{name}</text>'
        yield f'<line class="axis" x1="{_LEFT}" y1="{middle}" x2="{_WIDTH}" y2="{middle}"/>'
    yield from (_mark(stage, total) for stage in drawn)
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        anchor = "start" if share == 0 else "end" if share == 1 else "middle"
        at = _LEFT + share * (_WIDTH - _LEFT)
        yield f'<text x="{at:.0f}" y="{height - 6}" text-anchor="{anchor}">{share * total:.1f} s</text>'
    yield "</svg>"


def _mark(stage: Stage, total: float) -> str:
    scale = (_WIDTH - _LEFT) / total
    width = max(1.0, stage.seconds * scale)
    about = f"{stage.name}: {stage.stage}, {stage.seconds:.3f} s, at {stage.at:.3f} s"
    about += ", failed" * stage.failed + ", from the persistent cache" * stage.cache_hit
    top = _LANES.index(stage.stage) * _LANE + 4
    return (
        f'<rect class="{stage.stage}" x="{_LEFT + stage.at * scale:.1f}" y="{top}" width="{width:.1f}" '
        f'height="{_LANE - 8}"><title>{escape(about)}</title></rect>'
    )


def _reasons(report: Report) -> Iterator[str]:
    if not report.reasons:
        return
    yield "<h2>Made again, and why</h2>"
    for (name, location), reasons in report.reasons.items():
        kinds = report.kinds[name, location]
        count = sum(times for _, times in kinds)
        where = escape(place(report.folder, location))
        yield f"<h3>{escape(name)} <code>{where}</code>: {count} time{'' if count == 1 else 's'}</h3>"
        first = {reason.kind: reason for reason in reversed(reasons)}
        for kind, times in kinds:
            if kind in first:
                more = "" if times == 1 else f'<p class="soft">and {times - 1} more of the same kind</p>'
                yield f"<pre>{escape(first[kind].text)}</pre>{more}"
        if count > len(kinds):
            kept = "" if count == len(reasons) else f" (the first {len(reasons)})"
            rest = "\n\n".join(reason.text for reason in reasons)
            yield f"<details><summary>each one in order{kept}</summary><pre>{escape(rest)}</pre></details>"
