"""Bring pairs and labs up to date, or say what differs."""

import re

from traceonce.author.course import Course, Pair
from traceonce.author.course_map import PLACE as COURSE_MAP
from traceonce.author.course_map import build_map
from traceonce.author.execution import NotebookFailed, execute
from traceonce.author.gates import GATES
from traceonce.author.inventory import build_inventory
from traceonce.author.notebooks import assemble, edited_apart, read_stored, stored_outputs, write
from traceonce.author.starters import make_starter
from traceonce.errors import TraceOnceError
from traceonce.inventory.questions import ANSWERS


def build(course: Course) -> int:
    """Run what is stale, write what differs; one line for each notebook. Returns 1 where one could not be built."""
    failed = False
    for pair in course.pairs:
        try:
            print(f"{pair.notebook}: {_build_pair(pair)}", flush=True)
            if pair.kind == "lab":
                changed = write(course.root / pair.starter, make_starter(pair))
                print(f"{pair.starter}: {'written' if changed else 'up to date'}", flush=True)
        except TraceOnceError as error:
            failed = True
            print(error, flush=True)
    for place, make in ((COURSE_MAP, build_map), (ANSWERS, build_inventory)):
        if not (course.root / place).parent.is_dir():
            continue
        try:
            print(f"{place}: {make(course)}", flush=True)
        except TraceOnceError as error:
            failed = True
            print(error, flush=True)
    return 1 if failed else 0


def _build_pair(pair: Pair) -> str:
    """Bring one notebook up to date; says what was done."""
    path = pair.root / pair.notebook
    stored = read_stored(path)
    if stored is not None and edited_apart(pair, stored):
        raise NotebookFailed(
            f"{pair.notebook}: it and {pair.source.name} differ, and it was changed since it was built: "
            f"take its change over into {pair.source.name}, delete it, and build again."
        )
    outputs = stored_outputs(pair, stored) if stored is not None else None
    stale = outputs is None
    if outputs is None:
        outputs = execute(pair)
    changed = write(path, assemble(pair, outputs))
    return "executed" if stale else "written" if changed else "up to date"


def _by_place(line: str) -> list[tuple[int, str]]:
    """Orders findings by file, then by line as a number."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", line)]


def check(course: Course) -> int:
    """Run every gate; one line for each finding, and a last line that counts. Changes nothing; returns 1 on a finding."""
    findings = sorted({str(finding) for gate in GATES for finding in gate(course)}, key=_by_place)
    for finding in findings:
        print(finding)
    if findings:
        print(f"{len(findings)} to mend.")
        return 1
    print(f"{len(course.pairs)} pairs and {len(course.labs)} labs pass {len(GATES)} gates.")
    return 0
