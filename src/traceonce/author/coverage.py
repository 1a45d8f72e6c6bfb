"""The claims that each lesson owes (``docs/claims.toml``), and the executed cells that show them."""

import json
import re
import tomllib
from dataclasses import asdict, dataclass
from typing import Literal

from traceonce.author.course import Course, Finding, Pair
from traceonce.author.notebooks import Json, read_stored
from traceonce.errors import TraceOnceError

CLAIMS = "docs/claims.toml"

State = Literal["shown", "missing", "not written yet"]


@dataclass(frozen=True)
class Claim:
    """One claim: its lesson and ID, what it says, whether it is shown, and by which cells (counted from 1).

    `beside`: the cells in further notebooks of the lesson, as `03b_more:7`.
    """

    lesson: str
    id: str
    sentence: str
    state: State
    cells: tuple[int, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True)
class Coverage:
    """Every claim of the course, and what is wrong with how they are shown."""

    claims: tuple[Claim, ...]
    findings: tuple[Finding, ...]


def owed_claims(course: Course) -> dict[str, dict[str, str]]:
    """Lesson -> claim ID -> sentence.

    **Raises**: `TraceOnceError` where the file is not made of that.
    """
    try:
        owed = tomllib.loads((course.root / CLAIMS).read_text("utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TraceOnceError(f"{CLAIMS} is not TOML: {error}.") from error
    for lesson, claims in owed.items():
        if not isinstance(claims, dict) or not all(isinstance(text, str) and text for text in claims.values()):
            raise TraceOnceError(f'{CLAIMS}: under [{lesson}] write lines like P1 = "one sentence".')
    return owed


def coverage(course: Course) -> Coverage:
    """Match the claims that are owed with the cells that show them."""
    try:
        owed = owed_claims(course)
    except TraceOnceError as error:
        return Coverage((), (Finding(CLAIMS, str(error)),))
    claims: list[Claim] = []
    findings = _faults_of_list(course, owed)
    written: dict[str, list[Pair]] = {}
    for pair in course.lessons:
        written.setdefault(pair.lesson, []).append(pair)
    for lesson, sentences in owed.items():
        if lesson not in written:
            claims += [Claim(lesson, claim, text, "not written yet") for claim, text in sentences.items()]
            continue
        first, *further = written[lesson]
        if not any((pair.root / pair.notebook).is_file() for pair in written[lesson]):
            claims += [Claim(lesson, claim, text, "missing") for claim, text in sentences.items()]
            findings.append(
                Finding(str(first.notebook), f"no claim of {lesson} is shown: run 'traceonce author build'.")
            )
            continue
        shown = _cells_by_claim(first)
        others = [(pair.name, _cells_by_claim(pair)) for pair in further]
        for claim, text in sentences.items():
            cells = tuple(shown.get(claim, ()))
            beside = tuple(f"{name}:{number}" for name, theirs in others for number in theirs.get(claim, ()))
            claims.append(Claim(lesson, claim, text, "shown" if cells or beside else "missing", cells, beside))
            if not cells and not beside:
                owing = next((pair for pair in written[lesson] if _is_named(pair, claim)), first)
                why = _why_missing(owing, claim)
                findings.append(Finding(str(owing.notebook), f"{claim} is not shown: {why}."))
    findings += [finding for pair in course.pairs for finding in _faults_of_pair(pair, owed)]
    return Coverage(tuple(claims), tuple(findings))


def _cells_by_claim(pair: Pair) -> dict[str, list[int]]:
    """Claim ID -> numbers of the executed code cells that carry it and have an output."""
    try:
        stored = read_stored(pair.root / pair.notebook)
    except TraceOnceError:
        stored = None  # reported by the gate for readable sources
    shown: dict[str, list[int]] = {}
    for number, cell in enumerate(stored["cells"] if stored else [], start=1):
        if cell["cell_type"] == "code" and _is_evidence(cell):
            for claim in _named(cell["metadata"]):
                shown.setdefault(claim, []).append(number)
    return shown


def _is_evidence(cell: Json) -> bool:
    """Whether the cell ran and something can be read in its output."""
    return isinstance(cell.get("execution_count"), int) and any(
        output.get("text", "").strip() or output.get("data") or output.get("ename") for output in cell["outputs"]
    )


def _named(metadata: Json) -> list[str]:
    claims = metadata.get("claims", [])
    return [claim for claim in claims if isinstance(claim, str)] if isinstance(claims, list) else []


def _is_named(pair: Pair, claim: str) -> bool:
    """Whether a code cell of the source names the claim; not where the source cannot be read."""
    try:
        return any(claim in _named(cell.metadata) for cell in pair.cells if cell.cell_type == "code")
    except TraceOnceError:
        return False  # reported by the gate for readable sources


def _why_missing(pair: Pair, claim: str) -> str:
    try:
        _ = pair.cells
    except TraceOnceError:
        return "the source cannot be read"
    if _is_named(pair, claim):
        return "the cell that names it has no stored output; print the evidence and run 'traceonce author build'"
    return f'no code cell has it in its metadata, as claims=["{claim}"]'


def _faults_of_list(course: Course, owed: dict[str, dict[str, str]]) -> list[Finding]:
    """What is wrong with the list itself."""
    findings = []
    home: dict[str, str] = {}
    for lesson, sentences in owed.items():
        for claim in sentences:
            if not re.fullmatch(r"[A-Z]\d+", claim):
                findings.append(Finding(CLAIMS, f"{claim!r} is not an ID: write a letter and a number, as P3."))
            if claim in home:
                findings.append(Finding(CLAIMS, f"{claim} stands under {home[claim]} and under {lesson}: rename one."))
            home[claim] = lesson
    for pair in course.lessons:
        if not owed.get(pair.lesson) and pair.name == pair.lesson:
            findings.append(Finding(CLAIMS, f"the lesson {pair.name} has no claims: list them under [{pair.name}]."))
    return findings


def _faults_of_pair(pair: Pair, owed: dict[str, dict[str, str]]) -> list[Finding]:
    """Cells that name a claim which does not exist, or which is another lesson's."""
    home = {claim: lesson for lesson, sentences in owed.items() for claim in sentences}
    findings = []
    try:
        cells = pair.cells
    except TraceOnceError:
        return []  # reported by the gate for readable sources
    for cell in cells:
        for claim in _named(cell.metadata):
            if claim not in home:
                findings.append(Finding(pair.at(cell), f"claim {claim!r} is not in {CLAIMS}: mend one of them."))
            elif pair.kind == "lesson" and home[claim] != pair.lesson:
                findings.append(Finding(pair.at(cell), f"claim {claim} is owed by {home[claim]}, not by this lesson."))
            elif cell.cell_type != "code":
                findings.append(Finding(pair.at(cell), f"claim {claim} stands on a text cell: put it on the evidence."))
    return findings


def report(course: Course, *, check: bool, as_json: bool) -> int:
    """Print every claim and the cells that show it. With `check`, returns 1 where a finding stands."""
    result = coverage(course)
    if as_json:
        print(json.dumps({key: [asdict(item) for item in items] for key, items in vars(result).items()}, indent=2))
    else:
        _print_table(result)
    return 1 if check and result.findings else 0


def _print_table(result: Coverage) -> None:
    lessons = dict.fromkeys(claim.lesson for claim in result.claims)
    for lesson in lessons:
        claims = [claim for claim in result.claims if claim.lesson == lesson]
        shown = sum(claim.state == "shown" for claim in claims)
        if all(claim.state == "not written yet" for claim in claims):
            print(f"{lesson}: not written yet, {len(claims)} claims")
            continue
        print(f"{lesson}: {shown} of {len(claims)} claims shown")
        for claim in claims:
            places = (*map(str, claim.cells), *claim.beside)
            where = f"cell {', '.join(places)}" if places else "MISSING"
            print(f"  {claim.id:<4} {where:<12} {claim.sentence}")
    for finding in result.findings:
        print(finding)
