"""The proof's submissions through the real grader: as whole notebooks, each in a sandbox of its own."""

import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.progress import track

from traceonce.author.course import Pair
from traceonce.author.notebooks import dumps
from traceonce.author.proof import Graded, Outcome
from traceonce.author.submissions import Answer, as_notebook
from traceonce.errors import TraceOnceError
from traceonce.grade.batch import Work, grade_submissions
from traceonce.grade.lab import load_lab, read_submission
from traceonce.grade.record import AssertRecord, Record

# The proof is repeatable: no secret. Inputs differ between seeds because a submission's id is part of what they come from.
_SEED = b"the proof of the graders of Trace Once"

_RECORDS_A_LINE = 50


def grade_answers(pair: Pair, work: Sequence[tuple[Answer, int]]) -> list[Graded]:
    """Grade each answer on its seed. One result for each, in order.

    **Raises**: `TraceOnceError` where the sandbox cannot be built, or where the grader or the hidden asserts are at fault.
    """
    lab = load_lab(pair.root / pair.source)
    with tempfile.TemporaryDirectory(prefix="traceonce-proof-") as folder:
        works = {}
        for answer, seed in work:
            path = Path(folder) / f"{answer.name}.ipynb"
            if not path.exists():
                path.write_text(dumps(as_notebook(pair, answer)), "utf-8")
            name = f"{answer.name}-{seed}"
            works[name] = Work(name, answer.name, read_submission(path, lab, root=pair.root), lab)
        stream = grade_submissions(works.values(), seed=_SEED, workers=_workers(), root=pair.root)
        records = {record.submission: record for record in _shown(stream, len(works), pair.name)}
    return [_graded(pair, records[name]) for name in works]


def _workers() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _shown(records: Iterable[Record], total: int, name: str) -> Iterator[Record]:
    """The same records, with progress on standard error: a bar on a terminal, a line every now and then elsewhere."""
    if sys.stderr.isatty():
        yield from track(records, description=name, total=total, console=Console(stderr=True), transient=True)
        return
    for done, record in enumerate(records, start=1):
        if done % _RECORDS_A_LINE == 0:
            print(f"{name}: {done} of {total} graded", file=sys.stderr, flush=True)
        yield record


def _graded(pair: Pair, record: Record) -> Graded:
    if record.defect:
        raise TraceOnceError(f"The grader of {pair.name} failed on {record.submission}: {record.defect}")
    return Graded(record.status, tuple(_outcome(found) for found in record.asserts))


def _outcome(found: AssertRecord) -> Outcome:
    """An assert as the learner is told of it: title and hint where it failed, and why."""
    passed = found.outcome == "passed"
    shown = "" if passed else " ".join(filter(None, (found.hint if found.outcome == "failed" else "", found.reason)))
    return Outcome(found.name, found.title, found.earned, found.points, passed, shown)
