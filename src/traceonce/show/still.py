"""Still pictures, for places that draw images and no widgets.

That of the counts has no seconds in it, because stored outputs are compared character by character. Those of bytes are
made only where numbers were asked for.
"""

from collections.abc import Iterator
from html import escape

from traceonce.show.calls import COMPILED, FAILED, STILL_MARKS, TRACED, CallsFeed, _Series, counts_text
from traceonce.show.lines import BarsFeed, TimelineFeed
from traceonce.show.records import bytes_text, plural

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


# -- bytes

_HATCHES = (
    "",
    '<path d="M-1 7L7 -1M3 11L11 3M-5 3L3 -5" stroke="#1f2328"/>',
    '<circle cx="2" cy="2" r="1.3" fill="#1f2328"/><circle cx="6" cy="6" r="1.3" fill="#1f2328"/>',
    '<path d="M0 4H8M4 0V8" stroke="#1f2328"/>',
    '<path d="M0 2H8M0 6H8" stroke="#1f2328"/>',
)
_GROUNDS = ("#59636e", "#d1d9e0", "#eef1f4", "#ffffff", "#c8d1da")
_DASHES = ("", "7 4", "2 4", "10 3 2 3")


def still_bars(feed: BarsFeed) -> str:
    """Bars with their sums; parts differ by hatching."""
    record = feed.record
    row, left, right = 30, 150, _WIDTH - 90
    height = 34 + row * len(record.arms) + 30
    sums = [sum(arm.values) for arm in record.arms]
    scale = (right - left) / (max(sums, default=0) or 1)
    parts = [*_opening(height, record.title, feed.finding()), "<defs>"]
    for index, shapes in enumerate(_HATCHES):
        parts.append(
            f'<pattern id="h{index}" width="8" height="8" patternUnits="userSpaceOnUse">'
            f'<rect width="8" height="8" fill="{_GROUNDS[index]}"/>{shapes}</pattern>'
        )
    parts += ["</defs>", _text(_LEFT, 20, record.title, 13, _INK)]
    for number, (arm, total) in enumerate(zip(record.arms, sums, strict=True)):
        top, x = 34 + row * number, float(left)
        parts.append(_text(left - 8, top + 15, _cut(arm.label, 20), 12, _INK, "end"))
        for part, value in enumerate(arm.values):
            if value > 0:
                width = max(value * scale, 0.5)
                parts.append(_box(round(x, 1), top, round(width, 1), 20, part))
                x += width
        parts.append(_text(round(x + 6, 1), top + 15, bytes_text(total), 12, _INK))
    x = _LEFT
    for part, name in enumerate(record.parts):
        parts.append(_box(x, height - 22, 16, 12, part))
        parts.append(_text(x + 22, height - 12, name, 11, _FAINT))
        x += 40 + 7 * len(name)
    return "".join((*parts, "</svg>"))


def _box(x: float, y: float, width: float, height: float, part: int) -> str:
    fill = f"url(#h{part % len(_HATCHES)})"
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}" stroke="{_INK}"/>'


def still_timeline(feed: TimelineFeed) -> str | None:
    """Bytes over seconds, with the limit and the end; None where there is no sample."""
    drawn = {label: points for label, points in feed.points().items() if points}
    if not drawn:
        return None
    height, left, right, top, bottom = 260, 84, _WIDTH - 130, 40, 212
    limit = feed.record.limit
    values = [value for points in drawn.values() for _, value, *_ in points]
    most = max((*values, limit.value if limit else 0.0)) * 1.06 or 1.0
    until = max(*(points[-1][0] for points in drawn.values()), 1e-3)

    def place(point: tuple[float, ...]) -> tuple[float, float]:
        x = left + (right - left) * point[0] / until
        return round(x, 1), round(bottom - (bottom - top) * point[1] / most, 1)

    parts = [*_opening(height, feed.record.title, feed.finding()), _text(_LEFT, 20, feed.record.title, 13, _INK)]
    parts.append(f'<path d="M{left} {top}V{bottom}H{right}" fill="none" stroke="{_FAINT}"/>')
    for value in (0.0, max(values)):
        parts.append(_text(left - 6, place((0, value))[1] + 4, bytes_text(value), 11, _FAINT, "end"))
    parts.append(_text(left, bottom + 16, "0 s", 11, _FAINT))
    parts.append(_text(right, bottom + 16, f"{until:.2f} s", 11, _FAINT, "end"))
    if limit is not None:
        y = place((0, limit.value))[1]
        parts.append(f'<path d="M{left} {y:g}H{right}" stroke="{_INK}" stroke-dasharray="3 3"/>')
        parts.append(_text(right + 8, y + 4, f"{limit.label} {bytes_text(limit.value)}", 11, _INK))
    for index, (label, points) in enumerate(drawn.items()):
        path = "L".join(f"{x:g} {y:g}" for x, y in map(place, points))
        dash = f' stroke-dasharray="{_DASHES[index % 4]}"' * bool(index % 4)
        parts.append(f'<path d="M{path}" fill="none" stroke="{_INK}" stroke-width="1.5"{dash}/>')
        legend = _LEFT + 150 * index
        parts.append(f'<path d="M{legend} {height - 14}h26" stroke="{_INK}" stroke-width="1.5"{dash}/>')
        parts.append(_text(legend + 32, height - 10, _cut(label, 18), 11, _INK))
    if feed.ending:
        x, y = place(next(iter(drawn.values()))[-1])
        parts.append(_mark(x, y, FAILED))
        parts.append(_text(x - 10, y - 9, feed.ending, 11, _INK, "end"))
    return "".join((*parts, "</svg>"))


def _opening(height: float, title: str, description: str) -> tuple[str, ...]:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img">',
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>",
        f'<rect width="{_WIDTH}" height="{height}" fill="{_PAPER}"/>',
    )


def _cut(words: str, most: int) -> str:
    return words if len(words) <= most else words[: most - 1] + "…"
