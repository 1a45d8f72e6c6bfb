"""The class as a whole: how submissions ended, how points are spread, and which misconception is how common.

For the teacher. It names no student, and holds no more of a hidden assert than its public title and hint.
"""

import html
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from traceonce.grade.record import Record
from traceonce.grade.reports import page

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; width: 100%; } caption { text-align: left; font-weight: 600; padding-bottom: .4rem; }
th, td { text-align: left; padding: .3rem .6rem; vertical-align: top; border-top: 1px solid #8886; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bar { display: block; height: .7rem; background: #2b6cb0; min-width: 1px; } td.chart { width: 30%; }
.hint { opacity: .8; }
""".strip()


@dataclass(frozen=True)
class AssertCount:
    """One hidden assert over a class: submissions that it was run on, that it failed on, and that it could not be run on."""

    task: str
    title: str
    hint: str
    passed: int
    failed: int
    unchecked: int

    @property
    def total(self) -> int:
        """Submissions that have an outcome for it."""
        return self.passed + self.failed + self.unchecked


@dataclass
class LabCount:
    """What is counted of one lab's submissions; nothing of a single one is kept."""

    total: int = 0
    graded: int = 0
    most: float = 0.0
    statuses: Counter[str] = field(default_factory=Counter)
    shares: Counter[int] = field(default_factory=Counter)
    asserts: dict[tuple[str, str], tuple[str, str, Counter[str]]] = field(default_factory=dict)

    def add(self, record: Record) -> None:
        """Count one more. A record that is no grade counts among the endings alone."""
        self.total += 1
        self.statuses[record.status] += 1
        if record.defect:
            return
        self.graded += 1
        self.most = max(self.most, record.max_score)
        if record.max_score:
            self.shares[_tenth(record.score / record.max_score)] += 1
        for one in record.asserts:
            _, _, outcomes = self.asserts.setdefault((one.task, one.name), (one.title, one.hint, Counter()))
            outcomes[one.outcome] += 1

    def by_failures(self) -> list[AssertCount]:
        """Outcomes of each assert, the one that fails most often first."""
        counts = [
            AssertCount(task, title, hint, outcomes["passed"], outcomes["failed"], outcomes["unchecked"])
            for (task, _), (title, hint, outcomes) in self.asserts.items()
        ]
        return sorted(counts, key=lambda one: -one.failed)


def summary_html(records: Iterable[Record]) -> Iterator[str]:
    """A page with a section for each lab."""
    labs: dict[str, LabCount] = {}
    for record in records:
        labs.setdefault(record.lab, LabCount()).add(record)
    parts = itertools.chain.from_iterable(_lab_section(lab, labs[lab]) for lab in sorted(labs))
    yield page("Class summary", _STYLE, parts)


def _lab_section(lab: str, count: LabCount) -> list[str]:
    full = count.statuses["passed"]
    parts = [
        f"<h2>{html.escape(lab or 'No lab')}</h2>",
        f"<p>{count.total} submission{'' if count.total == 1 else 's'}, {full} with full marks.</p>",
        *_table("How they ended", "status", count.statuses, count.total),
    ]
    if count.most:
        ordered = {f"{10 * tenth} to {10 * tenth + 10} %": count.shares[tenth] for tenth in range(9, -1, -1)}
        parts += _table(f"Points, as a share of {count.most:g}", "share", ordered, count.graded)
    counts = count.by_failures()
    if counts:
        parts.append("<table><caption>What went wrong, most common first</caption><thead><tr>")
        parts += [f'<th scope="col">{name}</th>' for name in ("failed", "", "what should hold", "hint that was shown")]
        parts.append("</tr></thead><tbody>")
        for one in counts:
            not_run = f" ({one.unchecked} not checked)" if one.unchecked else ""
            parts.append(
                f'<tr><td class="number">{one.failed} of {one.total}{not_run}</td>'
                f'<td class="chart">{_bar(one.failed, one.total)}</td>'
                f'<th scope="row">{html.escape(one.title)}<br><code>{html.escape(one.task)}</code></th>'
                f'<td class="hint">{html.escape(one.hint)}</td></tr>'
            )
        parts.append("</tbody></table>")
    return parts


def _tenth(share: float) -> int:
    return min(9, int(share * 10))


def _table(caption: str, what: str, counts: dict[str, int] | Counter[str], total: int) -> list[str]:
    rows = [
        f'<tr><th scope="row">{html.escape(name)}</th><td class="number">{number}</td>'
        f'<td class="chart">{_bar(number, total)}</td></tr>'
        for name, number in counts.items()
    ]
    head = f'<thead><tr><th scope="col">{what}</th><th scope="col">submissions</th><th scope="col"></th></tr></thead>'
    return [f"<table><caption>{html.escape(caption)}</caption>{head}<tbody>", *rows, "</tbody></table>"]


def _bar(part: int, total: int) -> str:
    """A bar beside a number that says the same, and so hidden from a screen reader."""
    share = 100 * part / total if total else 0
    return f'<span class="bar" aria-hidden="true" style="width:{share:.1f}%"></span>' if part else ""
