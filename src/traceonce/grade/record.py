"""The record of a graded submission: the one model that every report is made of."""

import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from traceonce.grade.guide import Section, read_guide
from traceonce.grade.lab import Diagnosis, Lab, Submission
from traceonce.sandbox.limits import Limits

Status = Literal["passed", "failed", "error", "timeout", "memory", "crashed", "missing", "malformed", "tampering"]
OutcomeKind = Literal["passed", "failed", "unchecked"]

FORMAT = 2
"""Version of the record's form; a record of another version is made again."""

_OF_DIAGNOSIS: dict[str, Status] = {"missing": "missing"}


@dataclass(frozen=True, slots=True)
class StudentLine:
    """A line of the student's own code: the cell's `grade_id`, the line's number from 1, its text."""

    cell: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class AssertRecord:
    """One hidden assert.

    **Arguments**

    - `name`, `task`, `title`, `hint`, `points`: as in the file of hidden asserts.
    - `outcome`: `passed`, `failed`, or `unchecked` where it could not be run; `earned`: the points for it.
    - `reason`: a sentence for the learner beside title and hint; may be empty.
    - `where`: the learner's own line that raised.
    - `note`: for the teacher alone; may hold expected values.
    """

    name: str
    task: str
    title: str
    hint: str
    points: float
    outcome: OutcomeKind
    earned: float
    why: str = ""
    reason: str = ""
    where: StudentLine | None = None
    note: str = ""


@dataclass(frozen=True)
class TaskRecord:
    """What the lab says about a task that has hidden asserts; see `guide.TaskGuide`."""

    name: str
    heading: str = ""
    minutes: int = 0
    sections: tuple[Section, ...] = ()


@dataclass(frozen=True, slots=True)
class CellRecord:
    """How a code cell of the lab ran with this submission: `reason` is empty where it ran to its end."""

    grade_id: str
    kind: str
    why: str = ""
    reason: str = ""
    where: StudentLine | None = None
    printed: str = ""


@dataclass(frozen=True)
class Record:
    """What came of one submission.

    **Arguments**

    - `submission`, `student`, `lab`, `file`: which one; `lab` is empty where it cannot be told.
    - `status`: `passed` means full marks; any other status can go with points for what was right.
    - `reasons`: sentences for the learner about the submission as a whole.
    - `minutes`: what the lab is meant to take; 0 where it does not say. `tasks`: the same for each task, and where to look back.
    - `defect`: what is wrong with the grader or the hidden asserts; such a record is no grade.
    - `tier`: the isolation it ran in; empty where nothing was run.
    - `key`: what it was made from (cells, lab, hidden asserts, seed, limits), as a digest.
    """

    submission: str
    student: str
    lab: str
    file: str
    status: Status
    score: float
    max_score: float
    reasons: tuple[str, ...] = ()
    asserts: tuple[AssertRecord, ...] = ()
    cells: tuple[CellRecord, ...] = ()
    minutes: int = 0
    tasks: tuple[TaskRecord, ...] = ()
    defect: str = ""
    tier: str = ""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_mb: float = 0.0
    key: str = ""
    format: int = FORMAT

    def to_json(self) -> str:
        """As a JSON document."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> "Record | None":
        """From `to_json`'s text; `None` for another version or no record at all."""
        try:
            form = json.loads(text)
            if form["format"] != FORMAT:
                return None
            form["asserts"] = tuple(AssertRecord(**_with_line(part)) for part in form["asserts"])
            form["cells"] = tuple(CellRecord(**_with_line(part)) for part in form["cells"])
            form["tasks"] = tuple(TaskRecord(**_with_sections(part)) for part in form["tasks"])
            form["reasons"] = tuple(form["reasons"])
            return cls(**form)
        except (ValueError, KeyError, TypeError):
            return None


def _with_line(form: dict[str, Any]) -> dict[str, Any]:
    return form | {"where": StudentLine(**form["where"]) if form["where"] else None}


def _with_sections(form: dict[str, Any]) -> dict[str, Any]:
    return form | {"sections": tuple(Section(**part) for part in form["sections"])}


def write_atomically(path: Path, text: str | Iterable[str], *, mode: int = 0o644) -> None:
    """Write a file so that a reader, or a run after a crash, finds the whole of it or nothing; text in parts is never held as a whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines([text] if isinstance(text, str) else text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, mode)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


# Making a record ------------------------------------------------------------------------------------------------------


def record_unread(*, submission: str, student: str, read: Submission, lab: str, max_score: float, key: str) -> Record:
    """The record of a file of which nothing can be graded; `max_score` is what its lab is worth, 0 where none is known."""
    first = read.diagnoses[0] if read.diagnoses else Diagnosis("empty", "There is nothing to grade in it.")
    return Record(
        submission=submission,
        student=student,
        lab=lab,
        file=read.path.name,
        status=_OF_DIAGNOSIS.get(first.kind, "malformed"),
        score=0.0,
        max_score=max_score,
        reasons=tuple(found.sentence for found in read.diagnoses) or (first.sentence,),
        key=key,
    )


@dataclass(frozen=True)
class Maker:
    """Makes the record of one submission from what the supervisor found.

    **Arguments**

    - `result`: the supervisor's result (`supervisor.Result` as JSON).
    """

    submission: str
    student: str
    read: Submission
    lab: Lab
    result: Mapping[str, Any]
    limits: Limits
    key: str

    def record(self) -> Record:
        """The record."""
        asserts = tuple(self._asserts())
        score = sum(found.earned for found in asserts)
        most = sum(found.points for found in asserts)
        cells = tuple(self._cells())
        guide = read_guide(self.lab)
        tasks = (TaskRecord(name, **vars(about)) for name, about in guide.tasks.items())
        return Record(
            submission=self.submission,
            student=self.student,
            lab=self.lab.name,
            file=self.read.path.name,
            status=self._status(asserts, cells, score, most),
            score=score,
            max_score=most,
            reasons=tuple(self._reasons()),
            asserts=asserts,
            cells=cells,
            minutes=guide.minutes,
            tasks=tuple(task for task in tasks if any(found.task == task.name for found in asserts)),
            defect=self.result["defect"],
            tier=self.result["tier"],
            seconds=round(self.result["seconds"], 3),
            cpu_seconds=round(self.result["cpu_seconds"], 3),
            peak_mb=round(self.result["peak_mb"], 1),
            key=self.key,
        )

    def _asserts(self) -> Iterator[AssertRecord]:
        planned = {about["name"]: about for about in self.result["planned"]}  # the cases of one assert share its name
        for name, about in planned.items():
            outcomes = self.result["outcomes"].get(name, [])
            cases = sum(other["name"] == name for other in self.result["planned"])
            worst = _worst(outcomes, cases)
            student = worst.get("student")
            yield AssertRecord(
                name=name,
                task=about["task"],
                title=about["title"],
                hint=about["hint"],
                points=float(about["points"]),
                outcome=worst["outcome"],
                earned=float(about["points"]) if worst["outcome"] == "passed" else 0.0,
                why=worst.get("why", ""),
                reason=self._sentence(student, about["task"]) if student else worst.get("reason", ""),
                where=self._line(student) if student else None,
                note=worst.get("note", ""),
            )

    def _cells(self) -> Iterator[CellRecord]:
        found = {int(index): about for index, about in self.result["cells"].items()}
        for index, cell in enumerate(self.lab.answered(self.read.cells)):
            about = found.get(index)
            if about is None:
                yield CellRecord(cell.grade_id, cell.kind, "not_run", "It was not run.")
                continue
            error = about["error"]
            yield CellRecord(
                cell.grade_id,
                cell.kind,
                error["kind"] if error else "",
                self._sentence(error, cell.grade_id) if error else "",
                self._line(error) if error else None,
                about["printed"],
            )

    def _status(
        self, asserts: tuple[AssertRecord, ...], cells: tuple[CellRecord, ...], score: float, most: float
    ) -> Status:
        """The most telling word: what kept the rest from being checked comes before what was merely wrong."""
        kinds: list[Status] = [finding["kind"] for finding in self.result["findings"]]
        if self.result["defect"]:
            return "error"
        if "tampering" in kinds:
            return "tampering"
        if most > 0 and score == most:
            return "passed"
        if kinds:
            return kinds[0]
        serious = [found for found in self.read.diagnoses if found.kind != "reordered"]
        if serious:
            return _OF_DIAGNOSIS.get(serious[0].kind, "malformed")
        solution_errors = [cell.why for cell in cells if cell.kind == "solution" and cell.why]
        whys = [*solution_errors, *(found.why for found in asserts)]
        if "timeout" in whys:
            return "timeout"
        if "memory" in whys:
            return "memory"
        return "error" if solution_errors else "failed"

    def _reasons(self) -> Iterator[str]:
        if self.result["defect"]:
            yield "The grader itself failed on this notebook. This is not your fault: tell your teacher."
        yield from (found.sentence for found in self.read.diagnoses)
        if self.read.own_code_cells:
            yield (
                f"{self.read.own_code_cells} code cell(s) that you added were not run: only the lab's own answer cells are "
                "graded, so define there what they need."
            )

    def _sentence(self, error: Mapping[str, Any], task: str) -> str:
        """A student's error as a sentence for the student."""
        kind = error["kind"]
        if kind == "raised":
            return f"Your code raised {error['type_name']}: {error['message']}".rstrip(": ")
        if kind == "timeout":
            return error["message"] if not error.get("type_name") else self._too_long()
        if kind == "memory" and error.get("type_name"):
            return f"Your code ran out of memory ({error['type_name']}): it may use {self.limits.memory_mb} MB."
        if kind == "unknown":
            return f"{error['message'][:1].upper()}{error['message'][1:]}: define it in the cell {task!r}."
        return str(error["message"])

    def _too_long(self) -> str:
        return f"It did not come to an end within {self.limits.call_seconds:g} s."

    def _line(self, error: Mapping[str, Any]) -> StudentLine | None:
        source = self.read.cells.get(error.get("cell", ""), "").splitlines()
        number = error.get("line", 0)
        if not 1 <= number <= len(source):
            return None
        return StudentLine(error["cell"], number, source[number - 1].strip()[:200])


def _worst(outcomes: list[dict[str, Any]], cases: int) -> dict[str, Any]:
    """One outcome for an assert with several cases: it passes when all of them do."""
    for wanted in ("failed", "unchecked"):
        for found in outcomes:
            if found["outcome"] == wanted:
                return found
    if len(outcomes) < cases:
        return {"outcome": "unchecked", "why": "timeout", "reason": "It was not reached before the time was used up."}
    return outcomes[0]
