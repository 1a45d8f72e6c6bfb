"""A picture of counts that is the same in every run: for places that draw images and no widgets.

It has no seconds in it, because stored outputs are compared character by character.
"""

from collections.abc import Iterator
from html import escape

from traceonce.show.calls import COMPILED, FAILED, STILL_MARKS, TRACED, CallsFeed, _Series, counts_text
from traceonce.show.records import plural

_WIDTH, _LEFT, _RIGHT, _ROW = 640, 16, 16, 64
_INK, _FAINT, _PAPER = "#1f2328", "#59636e", "#ffffff"
_FONT = 'font-family="system-ui, sans-serif"'


def still(feed: CallsFeed) -> str | None:
    """The picture as SVG, or None where no watched function was called."""
    drawn = [(label, counts, series) for label, counts, series in feed.series() if counts.calls]
    if not drawn:
        return None
    height = _ROW * len(drawn) + 44
    description = escape("; ".join(f"{label}: {counts_text(counts)}" for label, counts, _ in drawn))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img">',
        f"<title>Calls, traces and compiles</title><desc>{description}</desc>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{_PAPER}"/>',
    ]
    for row, (label, counts, series) in enumerate(drawn):
        parts.append(_text(_LEFT, row * _ROW + 20, f"{label}: {counts_text(counts)}", 13, _INK))
        parts.extend(_track(row * _ROW + 42, series))
    parts.extend(_legend(height - 14))
    return "".join((*parts, "</svg>"))


def _track(y: int, series: _Series) -> Iterator[str]:
    last = max(series.calls, 1)
    inner = _WIDTH - _LEFT - _RIGHT

    def x(number: int) -> float:
        return round(_LEFT + inner * ((number - 1) / (last - 1) if last > 1 else 0.0), 1) + 4

    yield f'<path d="M{x(1)} {y}H{x(last)}" stroke="{_FAINT}" stroke-width="1.5"/>'
    marked = {number for number, _ in series.first_marks}
    if last <= STILL_MARKS:
        yield from (
            f'<circle cx="{x(n)}" cy="{y}" r="2.5" fill="{_FAINT}"/>' for n in range(1, last + 1) if n not in marked
        )
    for number, flags in series.first_marks:
        yield _mark(x(number), y, flags)
    yield _text(_LEFT, y + 18, "call 1", 11, _FAINT)
    if last > 1:
        yield _text(_WIDTH - _RIGHT, y + 18, f"call {last}", 11, _FAINT, "end")
    if more := series.marked.count - len(series.first_marks):
        yield _text(_WIDTH / 2, y + 18, f"{plural(more, 'later mark')} not drawn", 11, _FAINT, "middle")


def _mark(x: float, y: float, flags: int) -> str:
    if flags & FAILED:
        return f'<path d="M{x - 5:g} {y - 5:g}l10 10m0 -10l-10 10" stroke="{_INK}" stroke-width="2"/>'
    if flags & TRACED and flags & COMPILED:
        return f'<path d="M{x:g} {y - 7:g}l7 7l-7 7l-7 -7z" fill="{_INK}"/>'
    if flags & TRACED:
        return f'<path d="M{x:g} {y - 7:g}l7 12h-14z" fill="{_PAPER}" stroke="{_INK}" stroke-width="1.5"/>'
    return f'<path d="M{x - 5:g} {y - 5:g}h10v10h-10z" fill="{_INK}"/>'


def _legend(y: float) -> Iterator[str]:
    x = _LEFT + 6
    for flags, words, width in [
        (TRACED | COMPILED, "traced and compiled", 150),
        (TRACED, "traced only", 100),
        (COMPILED, "compiled only", 115),
        (FAILED, "raised", 60),
    ]:
        yield _mark(x, y - 4, flags)
        yield _text(x + 12, y, words, 11, _FAINT)
        x += width


def _text(x: float, y: float, words: str, size: int, fill: str, anchor: str = "start") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" {_FONT}>{escape(words)}</text>'
