"""What runs in Gradescope's container: grades the one submission and writes ``results.json``.

    python -m traceonce.bundle.gradescope_run [--reference] /autograder

A submission that could not be graded must not look like a wrong one. So its results say NOT GRADED, to the student without and to
the teacher with the reason, and the exit code is 3. A defect of the grader leaves a traceback and no results, and ``run_autograder`` says
the same in their place.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from traceonce.bundle import grader_part
from traceonce.bundle.gradescope import Settings
from traceonce.doctor.machine import Machine
from traceonce.doctor.memory import groups
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade import reports
from traceonce.grade.batch import Work, find_notebooks, grade_submissions
from traceonce.grade.lab import Diagnosis, Lab, Submission, load_lab, read_submission
from traceonce.grade.record import Record, record_unread, write_atomically
from traceonce.sandbox.limits import Limits

_NOT_GRADED = "NOT GRADED, so this 0 is no grade: tell your teacher. Nothing is said about your notebook."
_MIB = 2**20


@dataclass(frozen=True)
class Autograder:
    """The folders that Gradescope makes, below one that is ``/autograder`` there."""

    home: Path

    @property
    def source(self) -> Path:
        """The unpacked archive."""
        return self.home / "source"

    @property
    def submission(self) -> Path:
        """What the student handed in."""
        return self.home / "submission"

    @property
    def results(self) -> Path:
        """Where the results go."""
        return self.home / "results" / "results.json"

    def who(self) -> str:
        """Names the submission's authors: their random inputs depend on it. The same at each try."""
        try:
            about = json.loads((self.home / "submission_metadata.json").read_text("utf-8"))
            ids = sorted(str(user["id"]) for user in about["users"])
        except FileNotFoundError:
            return "submission"
        except (ValueError, KeyError, TypeError) as error:
            raise TraceOnceError(f"submission_metadata.json does not say who handed in ({error!r}).") from error
        return "users-" + "-".join(ids)


def run(autograder: Autograder) -> int:
    """Grade what was handed in and write the results; returns the exit code."""
    settings: Settings | None = None
    try:
        settings = Settings.read(autograder.source)
        record = grade(autograder, settings)
        _refuse_no_grade(record, settings)
    except TraceOnceError as error:
        print(f"traceonce: not graded: {error}", file=sys.stderr)
        _write(autograder, not_graded(str(error), settings))
        return error.exit_code
    _write(autograder, results(record, settings))
    return 0


def grade(autograder: Autograder, settings: Settings) -> Record:
    """The record of what was handed in."""
    lab = load_lab(settings.lab, root=autograder.source)
    read = find_submission(autograder, lab)
    who = autograder.who()
    if not read.gradable:
        return record_unread(submission=who, student=who, read=read, lab=lab.name, max_score=settings.points, key="")
    return _grade_one(Work(who, who, read, lab), autograder, settings)


def _grade_one(work: Work, autograder: Autograder, settings: Settings) -> Record:
    limits = Limits.for_submission(seconds=settings.time_limit, memory_mb=settings.memory_limit)
    seed = grader_part.read_seed(autograder.source)
    # What the reference has compiled when the image was built is in the image.
    (record,) = grade_submissions([work], seed=seed, limits=limits, root=autograder.source, tier=settings.isolation)
    return record


def _refuse_no_grade(record: Record, settings: Settings) -> None:
    """**Raises**: `TraceOnceError` for a record that is no grade."""
    if record.defect:
        raise TraceOnceError(record.defect)
    if record.asserts and record.tier != settings.isolation:
        raise TraceOnceError(
            f"Student code was isolated by {record.tier!r}, and this autograder accepts {settings.isolation!r} alone."
        )


def find_submission(autograder: Autograder, lab: Lab) -> Submission:
    """The one notebook of the lab among the files that were handed in; where there is none to grade, why."""
    try:
        paths = [path for path, _ in find_notebooks([autograder.submission])]
    except UsageError:
        return _nothing(
            autograder.submission, lab, Diagnosis("missing", f"There is no notebook in it: hand in {lab.name}.ipynb.")
        )
    found = [read_submission(path, lab, root=autograder.source) for path in paths]
    good = [read for read in found if read.gradable]
    if not good:
        return found[0]
    if any(dict(read.cells) != dict(good[0].cells) for read in good):
        names = ", ".join(sorted(read.path.name for read in good))
        sentence = (
            f"There are different notebooks of this lab ({names}), and which one counts cannot be told: hand in one."
        )
        return _nothing(autograder.submission, lab, Diagnosis("duplicated", sentence))
    return good[0]


def _nothing(path: Path, lab: Lab, why: Diagnosis) -> Submission:
    return Submission(path, lab.name, MappingProxyType({}), (why,))


# The results ----------------------------------------------------------------------------------------------------------


def results(record: Record, settings: Settings) -> dict[str, Any]:
    """``results.json`` of a graded submission."""
    document: dict[str, Any] = json.loads(reports.gradescope(record))
    lines = [
        f"Isolation: {record.tier or 'no student code was run'}.",
        f"It took {record.seconds:.1f} s and {record.peak_mb:.0f} MB; the limits are {settings.time_limit:g} s and "
        f"{settings.memory_limit} MB.",
    ]
    have = container_mb()
    if have is not None and have < settings.container_mb:
        lines.append(
            f"The container has {have} MB and grading may need {settings.container_mb} MB: choose more in the assignment's settings."
        )
    document["tests"].append(_for_teacher("How it was graded", lines))
    document["extra_data"] |= {"accepted_tier": settings.isolation, "container_mb": have}
    return document


def not_graded(why: str, settings: Settings | None) -> dict[str, Any]:
    """``results.json`` of a submission that could not be graded."""
    return {
        "score": 0.0,
        "output": _NOT_GRADED,
        "output_format": "text",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "tests": [_for_teacher("Why it was not graded", [why]) | {"status": "failed"}],
        "extra_data": {
            "status": "not_graded",
            "lab": settings.lab if settings else "",
            "tier": "",
            "accepted_tier": settings.isolation if settings else "",
            "container_mb": container_mb(),
            "why": why,
        },
    }


def _for_teacher(name: str, lines: list[str]) -> dict[str, Any]:
    """An entry without points that students do not see."""
    return {
        "name": name,
        "name_format": "text",
        "output": "\n".join(lines),
        "output_format": "text",
        "visibility": "hidden",
    }


def container_mb(machine: Machine | None = None) -> int | None:
    """The memory that the container may use; `None` where it has no limit."""
    limits = [group.limit[0] for group in groups(machine or Machine()) if group.limit is not None]
    return min(limits) // _MIB if limits else None


def _write(autograder: Autograder, document: Mapping[str, Any]) -> None:
    autograder.results.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(autograder.results, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


# The reference --------------------------------------------------------------------------------------------------------


def check_reference(autograder: Autograder) -> None:
    """Grade the reference and say how it went; what it has compiled is kept for the submissions.

    **Raises**: `TraceOnceError` where it cannot be graded here or does not get full marks.
    """
    settings = Settings.read(autograder.source)
    lab = load_lab(settings.lab, root=autograder.source)
    cells = {cell.grade_id: cell.source for cell in lab.solutions}
    read = Submission(Path(f"{lab.name}.ipynb"), lab.name, MappingProxyType(cells))
    record = _grade_one(Work("reference", "reference", read, lab), autograder, settings)
    _refuse_no_grade(record, settings)
    if record.status != "passed":
        raise TraceOnceError(
            f"The reference gets {record.score:g} of {record.max_score:g} points here, so no submission can be graded:\n"
            + reports.feedback_text(record)
        )
    print(
        f"{lab.name} is ready: the reference gets {record.score:g} of {settings.points:g} points in {record.seconds:.1f} s, isolated by "
        f"{record.tier}. A container of {settings.container_mb} MB or more is needed"
        + (f"; this one has {have} MB." if (have := container_mb()) is not None else ".")
    )


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(prog="python -m traceonce.bundle.gradescope_run", description=__doc__)
    parser.add_argument("--reference", action="store_true", help="grade the reference instead of a submission")
    parser.add_argument("home", type=Path, help="the folder that is /autograder at Gradescope")
    given = parser.parse_args()
    autograder = Autograder(given.home.resolve())
    if not given.reference:
        sys.exit(run(autograder))
    try:
        check_reference(autograder)
    except TraceOnceError as error:
        print(f"traceonce: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
