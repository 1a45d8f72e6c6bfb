"""Grading many submissions: find them, ask the supervisor, keep a record of each, write the reports."""

import ast
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import secrets
import subprocess
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs

from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade import reports
from traceonce.grade.compiled import functions_of
from traceonce.grade.lab import Lab, Submission, find_root, lab_names, load_lab, read_submission
from traceonce.grade.progress import Progress
from traceonce.grade.record import Maker, Record, record_unread, write_atomically
from traceonce.grade.stopping import stop_on_signals
from traceonce.grade.summary import summary_html
from traceonce.grade.supervisor import RUN_AGAIN
from traceonce.sandbox.handle import NAMESPACES, refuse_unknown_tier
from traceonce.sandbox.limits import Limits

if TYPE_CHECKING:
    from traceonce.grade.cluster_address import Cluster

RUN_SUPERVISOR = (sys.executable, "-P", "-s", "-m", "traceonce.grade.supervisor")

FORMATS = ("gradescope", "junit", "csv", "feedback", "summary")

_SEED_BYTES = 32
_FEW = 2
_SAFE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SEPARATORS = " _-."


@dataclass(frozen=True)
class Work:
    """One submission to grade.

    **Arguments**

    - `id`: names its record and its folder, and is part of what its random inputs are made from.
    - `read`: what the notebook holds.
    - `lab`: the lab; `None` where it cannot be told, and then nothing is gradable.
    """

    id: str
    student: str
    read: Submission
    lab: Lab | None

    @property
    def gradable(self) -> bool:
        """Whether there is anything to run."""
        return self.lab is not None and self.read.gradable

    def digest(self) -> str:
        """Of the cells that are graded."""
        return hashlib.sha256(json.dumps(sorted(self.read.cells.items())).encode()).hexdigest()


def hidden_file(root: Path, lab: str) -> Path:
    """Where the hidden asserts of a lab are."""
    return root / "tests" / "hidden" / f"test_{lab}.py"


# The supervisor, from outside -----------------------------------------------------------------------------------------


def grade_submissions(
    works: Iterable[Work],
    *,
    seed: bytes,
    limits: Limits | None = None,
    workers: int = 1,
    root: Path | None = None,
    share_compiled: bool = True,
    tier: str = NAMESPACES,
) -> Generator[Record]:
    """Grade submissions, each in a sandbox of its own; records come as they are done, in no fixed order.

    **Arguments**

    - `works`: taken one by one, at most twice `workers` ahead.
    - `seed`: the secret; the same seed, submission id and cells give the same random inputs.
    - `share_compiled`: run the reference of each lab once and keep the operations that JAX compiled for it; see `grade.compiled`.
    - `root`: the checkout with ``tests/hidden/``; by default the one that holds this package.
    - `tier`: the isolation, one of `sandbox.handle.TIERS`.

    **Raises**: `TraceOnceError` where the sandbox cannot be built or the supervisor ends early.
    """
    limits = limits or Limits()
    root = root or find_root()
    pending: dict[str, Work] = {}
    source = iter(works)
    labs: set[str] = set()
    with _supervisor(workers, seed, compiled_folder() if share_compiled else None, tier) as (say, answers):
        exhausted = False
        while True:
            while not exhausted and len(pending) < 2 * workers:
                work = next(source, None)
                if work is None:
                    exhausted = True
                elif not work.gradable:
                    yield unread(work, seed, limits, root, tier)
                else:
                    if work.id in pending:
                        raise UsageError(f"Two submissions are named {work.id!r}: give each a name of its own.")
                    pending[work.id] = work
                    lab = lab_request(work, root)
                    if lab["digest"] not in labs:
                        labs.add(lab["digest"])
                        say({"lab": lab})
                    say({"job": job_of(work, limits, root) | {"lab": lab["digest"]}})
            if not pending:
                say({"finish": True})
                return
            result = next(answers)
            work = pending.pop(result["id"])
            yield record_of(work, result, seed, limits, root, tier)


def record_of(work: Work, result: Mapping[str, Any], seed: bytes, limits: Limits, root: Path, tier: str) -> Record:
    """The record of a submission that was graded; `result` is the supervisor's."""
    assert work.lab is not None
    key = _key(work, seed, limits, root, tier)
    return Maker(work.id, work.student, work.read, work.lab, result, limits, key).record()


def unread(work: Work, seed: bytes, limits: Limits, root: Path, tier: str) -> Record:
    """The record of a submission of which nothing can be graded."""
    lab = work.read.lab or next((name for name in lab_names(root) if name in work.read.path.name), None)
    most = points_of(hidden_file(root, lab)) if lab and lab in lab_names(root) else 0.0
    key = _key(work, seed, limits, root, tier)
    return record_unread(
        submission=work.id, student=work.student, read=work.read, lab=lab or "", max_score=most, key=key
    )


def points_of(hidden: Path) -> float:
    """What a file of hidden asserts is worth, read from its text: the grader itself never runs it."""
    if not hidden.is_file():
        return 0.0
    marks = (words for _, words in graded_marks(hidden))
    return float(sum(ast.literal_eval(words["points"]) for words in marks if "points" in words))


def graded_marks(hidden: Path) -> Iterator[tuple[int, dict[str | None, ast.expr]]]:
    """Each ``@graded(...)`` in a file of hidden asserts, as it stands in the text: its line, and its keywords."""
    for node in ast.walk(ast.parse(hidden.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "graded":
            yield node.lineno, {word.arg: word.value for word in node.keywords}


def compiled_folder() -> str | None:
    """Where compiled programs are kept between runs; `None` where this user has no such place."""
    folder = Path(platformdirs.user_cache_dir("traceonce")) / "compiled"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return None
    return str(folder) if os.access(folder, os.W_OK) else None


def lab_request(work: Work, root: Path) -> dict[str, Any]:
    """A submission's lab for a supervisor: its code, and a digest of everything that decides what the reference compiles."""
    assert work.lab is not None
    hidden = hidden_file(root, work.lab.name)
    text = hidden.read_text("utf-8") if hidden.is_file() else ""
    digest = hashlib.sha256(json.dumps([asdict(work.lab), text]).encode()).hexdigest()
    return {"digest": digest, "cells": [cell.as_source() for cell in work.lab.code]}


def job_of(work: Work, limits: Limits, root: Path) -> dict[str, Any]:
    """What the supervisor needs: given cells are the lab's, solution cells the submission's."""
    assert work.lab is not None
    return {
        "id": work.id,
        # The cells are part of it: who learns the inputs of one try must not meet them again in the next.
        "submission": f"{work.id}\n{work.digest()}",
        "hidden": str(hidden_file(root, work.lab.name)),
        "missing": (missing := {found.grade_id: found.sentence for found in work.read.diagnoses if found.grade_id}),
        "absent": {
            name: sentence for task, sentence in missing.items() for name in functions_of([work.lab[task].source])
        },
        "limits": limits.to_json(),
        "cells": [cell.as_source() for cell in work.lab.answered(work.read.cells)],
    }


@contextlib.contextmanager
def _supervisor(
    workers: int, seed: bytes, compiled: str | None, tier: str
) -> Iterator[tuple[Any, Iterator[dict[str, Any]]]]:
    """A running supervisor: a function that sends it a request, and its answers."""
    # A session of its own: an interrupt at the terminal is for the one who can decide what to keep.
    process = subprocess.Popen(
        RUN_SUPERVISOR, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    to_supervisor, from_supervisor = process.stdin, process.stdout

    def say(request: dict[str, Any]) -> None:
        try:
            to_supervisor.write(json.dumps(request) + "\n")
            to_supervisor.flush()
        except BrokenPipeError as error:
            raise _ended_early() from error

    def answers() -> Iterator[dict[str, Any]]:
        for line in from_supervisor:
            answer = json.loads(line)
            if "fatal" in answer:
                raise TraceOnceError(answer["fatal"])
            if "result" in answer:
                yield answer["result"]
        raise _ended_early()

    try:
        say(
            {
                "setup": {
                    "workers": workers,
                    "seed": hashlib.sha256(seed).hexdigest(),
                    "compiled": compiled,
                    "tier": tier,
                }
            }
        )
        yield say, answers()
    except BaseException:
        process.kill()
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            to_supervisor.close()
        process.wait()
        from_supervisor.close()


def _ended_early() -> TraceOnceError:
    return TraceOnceError(f"The grader's supervisor ended early: {RUN_AGAIN}")


def _key(work: Work, seed: bytes, limits: Limits, root: Path, tier: str) -> str:
    """A digest of all that a record depends on: where it is the same, the work is not done again."""
    diagnoses = [asdict(found) for found in work.read.diagnoses]
    parts: list[Any] = [
        work.id,
        sorted(work.read.cells.items()),
        diagnoses,
        work.read.own_code_cells,
        limits.to_json(),
        tier,
    ]
    if work.lab is not None:
        hidden = hidden_file(root, work.lab.name)
        parts += [asdict(work.lab), hidden.read_text() if hidden.is_file() else ""]
    return hashlib.sha256(seed + json.dumps(parts).encode()).hexdigest()


# Finding submissions --------------------------------------------------------------------------------------------------


def find_notebooks(paths: Iterable[Path]) -> Iterator[tuple[Path, Path]]:
    """Each notebook at the paths, with the path that names it: relative to its folder for those found in one.

    **Raises**: `UsageError` for a path that is not there, or where there is no notebook at all.
    """
    found = False
    for path in paths:
        if path.is_dir():
            for notebook in sorted(path.rglob("*.ipynb")):
                if not any(part.startswith(".") for part in notebook.relative_to(path).parts):
                    found = True
                    yield notebook, notebook.relative_to(path)
        elif path.exists() or path.is_symlink():
            found = True
            yield path, Path(path.name)
        else:
            raise UsageError(f"There is nothing at {path}: give notebooks, or folders that hold some.")
    if not found:
        raise UsageError("There is no notebook (.ipynb) at the given paths.")


def name_submission(relative: Path, taken: Mapping[str, Any]) -> str:
    """A file name for the records of a submission, and no two alike."""
    plain = "__".join(relative.with_suffix("").parts)
    safe = re.sub(r"[^A-Za-z0-9._-]", "_", plain).lstrip(".-_")[:80] or "notebook"
    if safe == plain and safe not in taken and _SAFE_NAME.fullmatch(safe):
        return safe
    return f"{safe}-{hashlib.sha256(os.fsencode(relative)).hexdigest()[:8]}"


def student_of(relative: Path, lab: str) -> str:
    """Who handed it in: the outermost folder (``alice/lab01.ipynb``), or the file's name without the lab's."""
    if len(relative.parts) > 1:
        return relative.parts[0]
    rest = relative.stem.replace(lab, "").strip(_SEPARATORS) if lab else relative.stem
    return rest or relative.stem


# The command ----------------------------------------------------------------------------------------------------------


def grade_paths(
    paths: Iterable[Path],
    *,
    out: Path,
    lab: str | None = None,
    seed_file: Path | None = None,
    workers: int = 1,
    formats: tuple[str, ...] = FORMATS,
    time_limit: float = 60.0,
    memory_limit: int = 2048,
    root: Path | None = None,
    cluster: "Cluster | None" = None,
    tier: str = NAMESPACES,
) -> list[Record]:
    """Grade notebooks and folders of them; records and reports go to `out`. What was graded before is not graded again.

    **Arguments**

    - `workers`: submissions at a time on this machine.
    - `cluster`: grade there instead; then `workers` counts for nothing.
    - `tier`: the isolation, one of `sandbox.handle.TIERS`; what was graded under another is graded again.

    **Raises**: `UsageError` for paths, formats or limits that make no sense; `TraceOnceError` where a seed, the output
    folder or the sandbox is not to be had, or where the grader failed on a submission.
    """
    _check_usage(formats, time_limit, memory_limit, tier)
    root = root or find_root()
    if not (root / "tests" / "hidden").is_dir():
        raise TraceOnceError(
            f"{root} is a learner's copy of the course, which has no hidden asserts: check your own work with --trusted, and hand it in."
        )
    _check_environment(cluster)
    limits = Limits.for_submission(seconds=time_limit, memory_mb=memory_limit)
    fixed = load_lab(lab, root=root) if lab else None
    notebooks = list(find_notebooks(paths))
    with _folder(out) as folder:
        seed = _seed(seed_file, folder)
        works = _works(notebooks, fixed, root)
        records: dict[str, Record] = {}
        todo = []
        for work in works:
            kept = _kept(folder, work.id, _key(work, seed, limits, root, tier))
            if kept:
                records[work.id] = kept
            else:
                todo.append(work)
        # For one or two submissions, running the reference first would cost more than it saves.
        shared = len(todo) > _FEW
        with Progress(total=len(works), done=len(records)) as progress, stop_on_signals() as stop:
            if cluster is None:
                stream = grade_submissions(
                    todo, seed=seed, limits=limits, workers=workers, root=root, share_compiled=shared, tier=tier
                )
            else:
                from traceonce.grade.cluster import grade_on_cluster  # importing Dask takes a second

                stream = grade_on_cluster(
                    todo,
                    cluster=cluster,
                    seed=seed,
                    limits=limits,
                    root=root,
                    share_compiled=shared,
                    tell=progress.note,
                    tier=tier,
                )
            try:
                # Closed whatever happens, so that nothing is graded on while the reports are written.
                with contextlib.closing(stream):
                    while True:
                        with stop.waiting():
                            record = next(stream, None)
                        if record is None:
                            break
                        _write_record(folder, record, formats)
                        records[record.submission] = record
                        progress.show(record)
            except BaseException:
                _write_reports_if_possible(folder, records, formats)
                raise
            _write_reports(folder, _earlier(folder, records) | records, formats)
        progress.summarise(list(records.values()), folder)
    if defects := [record for record in records.values() if record.defect]:
        first = defects[0]
        raise TraceOnceError(
            f"The grader failed on {len(defects)} of {len(records)} submissions, first {first.submission}: {first.defect}"
        )
    return [records[work.id] for work in works]


def _check_usage(formats: tuple[str, ...], time_limit: float, memory_limit: int, tier: str) -> None:
    refuse_unknown_tier(tier)
    if unknown := [name for name in formats if name not in FORMATS]:
        raise UsageError(f"There is no format {unknown[0]!r}: choose from {', '.join(FORMATS)}.")
    if not 1 <= time_limit <= 86_400:
        raise UsageError("The time limit must be between 1 and 86400 seconds.")
    if memory_limit < 512:
        raise UsageError("The memory limit must be at least 512 MB: Python with JAX takes about 250 MB of it.")


def _check_environment(cluster: "Cluster | None") -> None:
    """The judge needs more than a learner's environment has."""
    needed, extra = ["pytest", "flatbuffers"], "grade"
    if cluster is not None:
        needed.append("distributed")
        extra = "cluster"
    if missing := [name for name in needed if importlib.util.find_spec(name) is None]:
        raise TraceOnceError(
            f"Grading needs {' and '.join(missing)}, which this environment does not have: run `make env KIND=dev` in the "
            f"checkout, or `pip install 'traceonce[{extra}]'`."
        )


def _works(notebooks: list[tuple[Path, Path]], fixed: Lab | None, root: Path) -> list[Work]:
    works: dict[str, Work] = {}
    labs: dict[str, Lab] = {fixed.name: fixed} if fixed else {}
    for path, relative in notebooks:
        read = read_submission(path, fixed, root=root)
        if read.lab and read.gradable and read.lab not in labs:
            labs[read.lab] = load_lab(read.lab, root=root)
        name = name_submission(relative, works)
        works[name] = Work(name, student_of(relative, read.lab or ""), read, labs.get(read.lab or ""))
    return list(works.values())


@contextlib.contextmanager
def _folder(out: Path) -> Iterator[Path]:
    """The output folder, made and held: one grader at a time writes to it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = os.open(out / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TraceOnceError(
            f"The folder {out} cannot be written to ({error.strerror}): choose another --out."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield out
    except BlockingIOError as error:
        raise TraceOnceError(f"Another grader is writing to {out}: wait for it, or choose another --out.") from error
    finally:
        os.close(lock)


def _seed(seed_file: Path | None, folder: Path) -> bytes:
    """The secret seed: from the file, or made once for the folder."""
    path = seed_file or folder / "seed"
    if seed_file is None and not path.exists():
        if next(folder.glob("*/record.json"), None) is not None:
            raise TraceOnceError(
                f"There are records in {folder} and the seed that they were made with is gone: put it back as {path}, name it with "
                "--seed-file, or choose another --out."
            )
        try:
            write_atomically(path, secrets.token_hex(_SEED_BYTES) + "\n", mode=0o600)
        except OSError as error:
            raise TraceOnceError(
                f"The seed {path} cannot be written ({error.strerror}): make room, or choose another --out."
            ) from error
    try:
        seed = path.read_bytes().strip()
    except OSError as error:
        raise TraceOnceError(f"The seed file {path} cannot be read ({error.strerror}): name another.") from error
    if len(seed) < 16:
        raise TraceOnceError(
            f"The seed in {path} is shorter than 16 characters, so it could be guessed: make it longer."
        )
    return seed


def _kept(folder: Path, name: str, key: str) -> Record | None:
    """The record of an earlier run, where it was made from the same things and is a grade."""
    try:
        record = Record.from_json((folder / name / "record.json").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    return record if record and record.key == key and not record.defect else None


def _earlier(folder: Path, records: Mapping[str, Record]) -> dict[str, Record]:
    """Records of earlier runs that lie in the folder, `records` left out: the reports about all are about them too.

    **Raises**: `TraceOnceError` for a record that cannot be read: the reports would be silent about somebody.
    """
    found = {}
    for path in sorted(folder.glob("*/record.json")):
        if path.parent.name in records:
            continue
        try:
            record = Record.from_json(path.read_text("utf-8", "replace"))
        except OSError as error:
            raise TraceOnceError(
                f"The record {path} cannot be read ({error.strerror}): make it readable, or remove it."
            ) from error
        if record is not None and record.submission == path.parent.name:
            found[record.submission] = record
    return found


def _write_record(folder: Path, record: Record, formats: tuple[str, ...]) -> None:
    """Reports first, the record last: where the record is, all of it is."""
    place = folder / record.submission
    try:
        place.mkdir(exist_ok=True)
        if "gradescope" in formats:
            write_atomically(place / "results.json", reports.gradescope(record))
        if "feedback" in formats:
            write_atomically(place / "feedback.txt", reports.feedback_text(record))
            write_atomically(place / "feedback.html", reports.feedback_html(record))
        write_atomically(place / "record.json", record.to_json())
    except OSError as error:
        raise TraceOnceError(
            f"The record of {record.submission} cannot be written ({error.strerror}): make room in {folder} and run the "
            "command again; finished records are kept."
        ) from error


def _write_reports(folder: Path, records: Mapping[str, Record], formats: tuple[str, ...]) -> None:
    """The files that are about all submissions."""
    rows = sorted(records.values(), key=lambda record: (record.lab, record.student, record.submission))
    for wanted, name, make in _OF_ALL:
        if wanted in formats:
            try:
                write_atomically(folder / name, make(rows))
            except OSError as error:
                raise TraceOnceError(f"{folder / name} cannot be written ({error.strerror}): make room.") from error


def _write_reports_if_possible(folder: Path, records: dict[str, Record], formats: tuple[str, ...]) -> None:
    """Bring the reports up to date after a batch that ended early. What ended it is what is told, not this."""
    try:
        _write_reports(folder, _earlier(folder, records) | records, formats)
    except TraceOnceError as error:
        print(f"traceonce: {error}", file=sys.stderr)


_OF_ALL: tuple[tuple[str, str, Callable[[list[Record]], str]], ...] = (
    ("csv", "grades.csv", reports.grades_csv),
    ("junit", "junit.xml", reports.junit),
    ("summary", "summary.html", summary_html),
)
