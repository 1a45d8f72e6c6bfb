"""The proof of the graders: every submission against every hidden assert, and the table that shows it."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass

from traceonce.author.course import Course, Finding, Pair
from traceonce.author.notebooks import code_digest
from traceonce.author.submissions import Answer, answers, folder_of, hidden_of, pick_labs
from traceonce.errors import TraceOnceError

WRONG_SEEDS = 3
"""Seeds on which a wrong answer is graded in a whole proof: enough to see an assert that catches it only by luck."""

_WHOLE = 20
"""From this number of seeds on a proof is whole. Below it, a wrong answer is graded once."""


@dataclass(frozen=True)
class Outcome:
    """What one hidden assert said of one submission: its name, public title, points, and the hint that was shown."""

    name: str
    title: str
    points: float
    max_points: float
    passed: bool
    shown: str = ""


@dataclass(frozen=True)
class Graded:
    """What the grader said of one submission: the status of its record and one outcome for each hidden assert."""

    status: str
    outcomes: tuple[Outcome, ...]


Grader = Callable[[Pair, Sequence[tuple[Answer, int]]], Sequence[Graded]]
"""Grades answers of a lab, each with the number of its seed; one result for each, in order."""


@dataclass(frozen=True)
class Run:
    """One answer graded on one seed."""

    answer: Answer
    seed: int
    graded: Graded


def find_faults(pair: Pair, runs: Sequence[Run]) -> list[Finding]:
    """What the runs prove against the lab's asserts or its submissions; nothing where the grader is proven.

    - The reference and each alternative get full marks on every seed.
    - Each wrong answer fails at the asserts that it names, and the hint that it names is shown.
    - The starter gets nothing, on any assert.
    - Each assert is failed by a wrong answer that names it.
    """
    findings = [finding for run in runs for finding in _faults_of(pair, run)]
    names = {outcome.name for run in runs for outcome in run.graded.outcomes}
    killed = {name for run in runs if run.answer.kind == "wrong" for name in run.answer.fails}
    where = str(hidden_of(pair))
    if not names:
        findings.append(Finding(where, "the grader reports no hidden assert: write one, or mend the file."))
    for name in sorted(names - killed):
        findings.append(
            Finding(where, f"no wrong answer names {name}: write one that it catches, or delete the assert.")
        )
    alternatives = {run.answer.name for run in runs if run.answer.kind == "alternative"}
    if len(alternatives) < 2:
        findings.append(
            Finding(str(folder_of(pair)), f"{len(alternatives)} alternative right answers, of at least two.")
        )
    return findings


def _faults_of(pair: Pair, run: Run) -> Iterator[Finding]:
    answer, outcomes = run.answer, run.graded.outcomes
    where = f"{pair.name}, {answer.name}, seed {run.seed}"
    if answer.kind in ("reference", "alternative"):
        for outcome in outcomes:
            if not outcome.passed or outcome.points != outcome.max_points:
                yield Finding(where, f"a right answer fails {outcome.name}: {outcome.shown or outcome.title}")
        if run.graded.status != "passed":
            yield Finding(where, f"a right answer has the status {run.graded.status!r}.")
    elif answer.kind == "starter":
        for outcome in outcomes:
            if outcome.points or outcome.passed:
                yield Finding(where, f"the untouched starter gets {outcome.points:g} points at {outcome.name}.")
    else:
        by_name = {outcome.name: outcome for outcome in outcomes}
        for name in answer.fails:
            if name not in by_name:
                yield Finding(where, f"it names the assert {name!r}, which {hidden_of(pair)} does not have.")
            elif by_name[name].passed:
                yield Finding(where, f"the trap '{answer.trap}' passes {name}.")
        shown = [by_name[name].shown for name in answer.fails if name in by_name and not by_name[name].passed]
        if shown and not any(answer.hint in text for text in shown):
            yield Finding(where, f"the hint {answer.hint!r} does not show; what shows is {shown[0]!r}.")


def run_all(pair: Pair, seeds: int, grader: Grader, first: int = 0) -> list[Run]:
    """Grade every answer of a lab: right ones on `seeds` seeds from `first` on, wrong ones on a few, the starter once."""
    work: list[tuple[Answer, int]] = []
    for answer in answers(pair):
        count = {"wrong": WRONG_SEEDS if seeds >= _WHOLE else 1, "starter": 1}.get(answer.kind, seeds)
        work += [(answer, seed) for seed in range(first, first + count)]
    graded = grader(pair, work)
    return [Run(answer, seed, result) for (answer, seed), result in zip(work, graded, strict=True)]


# The table ------------------------------------------------------------------------------------------------------------


def table_path(pair: Pair) -> str:
    """Where a lab's table is, relative to the root."""
    return f"docs/graders/{pair.name}.md"


def digest_of_inputs(pair: Pair) -> str:
    """A hash of everything that the table follows from: the lab's code, its hidden asserts, its submissions.

    **Raises**: `TraceOnceError` where the lab's source cannot be read.
    """
    files = [pair.root / hidden_of(pair), *sorted((pair.root / folder_of(pair)).glob("*.py"))]
    whole = hashlib.sha256(code_digest(pair.cells).encode())
    for path in files:
        content = path.read_bytes() if path.is_file() else b""
        whole.update(f"{path.relative_to(pair.root)}\0{len(content)}\0".encode() + content)
    return whole.hexdigest()[:16]


def render_table(pair: Pair, runs: Sequence[Run]) -> str:
    """The proof as a page. It holds what is the same on every seed."""
    reference = next(run for run in runs if run.answer.kind == "reference")
    once = {run.answer.name: run.answer for run in runs}
    wrong = [answer for answer in once.values() if answer.kind == "wrong"]
    titles = {outcome.name: outcome.title for outcome in reference.graded.outcomes}
    total = sum(outcome.max_points for outcome in reference.graded.outcomes)
    lines = [
        f"# The proof of {pair.name}",
        "",
        f"Written by `traceonce author graders --lab {pair.name}` after every line of it held: the reference and the",
        "alternatives get full marks on every seed, each wrong answer fails where it says, and the untouched starter",
        "gets nothing.",
        "",
        f"{len(titles)} hidden asserts, {total:g} points, {len(wrong)} wrong answers.",
        "",
        "| hidden assert | points | what it checks | failed by |",
        "|---|---|---|---|",
    ]
    for outcome in reference.graded.outcomes:
        killers = ", ".join(f"`{answer.name}`" for answer in wrong if outcome.name in answer.fails)
        lines.append(f"| `{outcome.name}` | {outcome.max_points:g} | {_cell(outcome.title)} | {killers} |")
    lines += ["", "| answer | what it is | fails at | hint that shows |", "|---|---|---|---|"]
    for answer in once.values():
        what = {"reference": "the reference", "alternative": "another right answer", "starter": "the untouched starter"}
        fails = ", ".join(f"`{name}`" for name in answer.fails)
        fails = fails or ("every assert" if answer.kind == "starter" else "")
        hint = f"... {answer.hint} ..." if answer.hint else ""
        lines.append(f"| `{answer.name}` | {_cell(answer.trap or what[answer.kind])} | {fails} | {_cell(hint)} |")
    return "\n".join([*lines, "", f"<!-- inputs: {digest_of_inputs(pair)} -->", ""])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def stale_tables(course: Course) -> Iterator[Finding]:
    """A lab whose table is missing or was written for other asserts or submissions; a table without a lab."""
    for pair in course.labs:
        path = course.root / table_path(pair)
        advice = f"run 'traceonce author graders --lab {pair.name}'."
        try:
            inputs = digest_of_inputs(pair)
        except TraceOnceError:
            continue  # an unreadable source, and reported so
        if not path.is_file():
            yield Finding(table_path(pair), f"the grader of {pair.name} is not proven yet: {advice}")
        elif f"<!-- inputs: {inputs} -->" not in path.read_text("utf-8"):
            yield Finding(table_path(pair), f"the lab, its asserts or its submissions changed since: {advice}")
    known = {course.root / table_path(pair) for pair in course.labs}
    for path in sorted((course.root / "docs/graders").glob("lab*.md")):
        if path not in known:
            yield Finding(str(path.relative_to(course.root)), "there is no such lab: delete the page.")


def starters_that_score(course: Course, grader: Grader | None = None) -> Iterator[Finding]:
    """Each starter, untouched, through the grader."""
    for pair in course.labs:
        if not (course.root / hidden_of(pair)).is_file():
            yield Finding(str(hidden_of(pair)), f"{pair.name} has no hidden asserts: write them.")
            continue
        if not (course.root / pair.starter).is_file():
            continue  # reported as a lab that is not made yet
        starter = Answer("starter", "starter")
        try:
            graded = (grader or _default_grader())(pair, [(starter, 0)])[0]
        except TraceOnceError as error:
            yield Finding(str(pair.starter), f"the grader cannot grade it: {error}")
            continue
        yield from _faults_of(pair, Run(starter, 0, graded))
        if not graded.outcomes:
            yield Finding(str(pair.starter), f"the grader says {graded.status!r} of it and judges nothing.")


# The command ----------------------------------------------------------------------------------------------------------


def prove(
    course: Course, *, lab: str | None, seeds: int, as_json: bool, first: int = 0, grader: Grader | None = None
) -> int:
    """Prove the graders of one lab or all, print the table, write it into docs/graders/. Returns the exit code."""
    results = []
    for pair in pick_labs(course, lab):
        runs = run_all(pair, seeds, grader or _default_grader(), first)
        findings = find_faults(pair, runs)
        results.append({"lab": pair.name, "seeds": seeds, "runs": runs, "findings": findings})
        if not as_json:
            _print_proof(pair, runs, findings, seeds)
        if not findings:
            path = course.root / table_path(pair)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(render_table(pair, runs), "utf-8")
    if as_json:
        print(json.dumps(results, indent=2, default=asdict))  # type: ignore[arg-type]
    return 1 if any(result["findings"] for result in results) else 0


def _print_proof(pair: Pair, runs: Sequence[Run], findings: Sequence[Finding], seeds: int) -> None:
    """The matrix: a row for each answer, a column for each assert, '.' passed and 'x' failed on some seed."""
    names = list(dict.fromkeys(outcome.name for run in runs for outcome in run.graded.outcomes))
    print(f"{pair.name}: {len(names)} hidden asserts, {seeds} seeds")
    for number, name in enumerate(names, start=1):
        print(f"  {number:>2}  {name}")
    width = max(len(run.answer.name) for run in runs)
    print(f"  {'':<{width}}  kind         {' '.join(f'{number:>2}' for number in range(1, len(names) + 1))}  points")
    for answer in dict.fromkeys(run.answer.name for run in runs):
        mine = [run for run in runs if run.answer.name == answer]
        failed = {outcome.name for run in mine for outcome in run.graded.outcomes if not outcome.passed}
        marks = " ".join(" x" if name in failed else " ." for name in names)
        points = min(sum(outcome.points for outcome in run.graded.outcomes) for run in mine)
        print(f"  {answer:<{width}}  {mine[0].answer.kind:<11}  {marks}  {points:g}")
    for finding in findings:
        print(finding)
    print(f"{pair.name}: {f'{len(findings)} to mend' if findings else 'proven'}.")


def _default_grader() -> Grader:
    from traceonce.author.grading import grade_answers

    return grade_answers
