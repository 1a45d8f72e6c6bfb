"""From a `Timeline` or `Bars` record to what their charts show."""

from typing import Any

from traceonce.show.envelope import Envelope
from traceonce.show.records import Bars, Timeline, bytes_text

_BUCKETS = 600


class TimelineFeed:
    """A timeline that may still grow: whole (`state`) or what is new (`changes`)."""

    kind = "timeline"

    def __init__(self, record: Timeline) -> None:
        self.record = record
        self.ending = record.ending
        self._lines = {line.label: Envelope(_BUCKETS) for line in record.lines}
        self._last: dict[str, tuple[float, float]] = {}
        self._peak: dict[str, tuple[float, float]] = {}
        for line in record.lines:
            for seconds, value in line.points:
                self.append(line.label, seconds, value)

    def points(self) -> dict[str, list[tuple[float, ...]]]:
        """The points kept, by line."""
        return {label: envelope.points() for label, envelope in self._lines.items()}

    def append(self, label: str, seconds: float, value: float) -> None:
        """Add one point to a line of the record. `KeyError` where it has no such line."""
        self._lines[label].add((seconds, value))
        self._last[label] = (seconds, value)
        if label not in self._peak or value > self._peak[label][1]:
            self._peak[label] = (seconds, value)

    def state(self) -> dict[str, Any]:
        """The whole picture."""
        return self._document(whole=True)

    def changes(self) -> dict[str, Any]:
        """The points that are new, and the sentences as they are."""
        return self._document(whole=False)

    def _document(self, *, whole: bool) -> dict[str, Any]:
        limit = self.record.limit
        return {
            "kind": self.kind,
            "title": self.record.title,
            "lines": [
                {
                    "label": label,
                    "last": self._last.get(label),
                    "points": envelope.state() if whole else envelope.changes(),
                }
                for label, envelope in self._lines.items()
            ],
            "limit": None if limit is None else {"label": limit.label, "value": limit.value},
            "ending": self.ending,
            "columns": ["line", "first", "highest", "last", "at (s)"],
            "rows": [self._row(label) for label in self._lines],
            "finding": self.finding(),
        }

    def _row(self, label: str) -> list[str]:
        if label not in self._last:
            return [label, "no sample", "", "", ""]
        first = self._first(label)
        seconds, last = self._last[label]
        return [label, bytes_text(first), bytes_text(self._peak[label][1]), bytes_text(last), f"{seconds:.2f}"]

    def _first(self, label: str) -> float:
        points = self._lines[label].points()
        return min(points, key=lambda point: point[0])[1]

    def finding(self) -> str:
        """What the picture says: from, highest, last, against the limit, and how it ended."""
        sentences = []
        for label in self._lines:
            if label not in self._last:
                sentences.append(f"{label}: no sample yet.")
                continue
            at, peak = self._peak[label]
            last = self._last[label][1]
            sentence = f"{label}: from {bytes_text(self._first(label))} to {bytes_text(last)}, highest {bytes_text(peak)} at {at:.2f} s"
            if self.record.limit is not None:
                limit = self.record.limit
                sentence += f", {peak / limit.value:.0%} of {limit.label} ({bytes_text(limit.value)})"
            sentences.append(sentence + ".")
        if self.ending:
            sentences.append(f"Ended: {self.ending}.")
        return "\n".join(sentences)

    def text(self) -> str:
        """The chart in words that are the same in every run."""
        names = ", ".join(line.label for line in self.record.lines)
        limit = "" if self.record.limit is None else f" against {self.record.limit.label}"
        return f"Chart over time: {self.record.title} ({names}){limit}."


class BarsFeed:
    """Bars do not grow: their changes are their state."""

    kind = "bars"

    def __init__(self, record: Bars) -> None:
        self.record = record

    def state(self) -> dict[str, Any]:
        """The whole picture."""
        record = self.record
        return {
            "kind": self.kind,
            "title": record.title,
            "parts": list(record.parts),
            "arms": [
                {"label": arm.label, "values": list(arm.values), "total": bytes_text(sum(arm.values))}
                for arm in record.arms
            ],
            "columns": ["", *record.parts, "sum"],
            "rows": [[arm.label, *map(bytes_text, (*arm.values, sum(arm.values)))] for arm in record.arms],
            "finding": self.finding(),
            "ratio": self._ratio(),
        }

    changes = state

    def finding(self) -> str:
        """What the picture says: each sum, and the ratio of the largest to the smallest."""
        lines = [f"{arm.label}: {bytes_text(sum(arm.values))}" for arm in self.record.arms]
        return "\n".join((*lines, self._ratio())).rstrip()

    def _ratio(self) -> str:
        sums = [(sum(arm.values), arm.label) for arm in self.record.arms]
        if len(sums) < 2 or min(sums)[0] <= 0:
            return ""
        (least, low), (most, high) = min(sums), max(sums)
        return f"{high} takes {most / least:.1f} times the bytes of {low}."

    def text(self) -> str:
        """The chart in words that are the same on every machine."""
        arms = ", ".join(arm.label for arm in self.record.arms)
        return f"Bar chart: {self.record.title} of {arms} ({', '.join(self.record.parts)})."
