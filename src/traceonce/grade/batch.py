"""Grading many submissions: find them, ask the supervisor, keep a record of each, write the reports."""

import ast
import contextlib
import hashlib
import importlib.util
import itertools
import json
import os
import re
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import platformdirs

from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.compiled import functions_of
from traceonce.grade.kept import FORMATS, Kept, held, seed_of
from traceonce.grade.lab import Lab, Submission, find_root, lab_names, load_lab, read_submission
from traceonce.grade.progress import Progress
from traceonce.grade.record import Maker, Record, record_unread
from traceonce.grade.stopping import stop_on_signals
from traceonce.grade.supervised import Supervised
from traceonce.grade.supervisor import RUN_AGAIN
from traceonce.sandbox.handle import NAMESPACES, refuse_unknown_tier
from traceonce.sandbox.limits import Limits

if TYPE_CHECKING:
    from traceonce.grade.cluster_address import Cluster

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
    setup = {
        "workers": workers,
        "seed": hashlib.sha256(seed).hexdigest(),
        "compiled": compiled_folder() if share_compiled else None,
        "tier": tier,
    }
    limits, root = limits or Limits(), root or find_root()
    with Supervised(setup) as supervised:
        yield from records_from(_Here(supervised, workers, limits, root), works, seed, limits, root, tier)


class Grader(Protocol):
    """Something that takes submissions and gives results, in no fixed order."""

    @property
    def open(self) -> int:
        """How many it has and has given no result for."""

    def has_room(self) -> bool:
        """Whether another one would be started soon."""

    def give(self, work: Work) -> None:
        """Take one that is gradable."""

    def wait(self) -> Iterator[tuple[Work, dict[str, Any]]]:
        """Let a moment pass, or until something happens; results that came."""


def records_from(
    grader: Grader, works: Iterable[Work], seed: bytes, limits: Limits, root: Path, tier: str
) -> Iterator[Record]:
    """Keep a grader busy, and make a record of each submission: of those that cannot be graded without it."""
    source, exhausted = iter(works), False
    while True:
        while not exhausted and grader.has_room():
            work = next(source, None)
            if work is None:
                exhausted = True
            elif not work.gradable:
                yield unread(work, seed, limits, root, tier)
            else:
                grader.give(work)
        if exhausted and not grader.open:
            return
        for work, result in grader.wait():
            yield record_of(work, result, seed, limits, root, tier)


class _Here:
    """The `Grader` of this machine."""

    def __init__(self, supervised: Supervised, workers: int, limits: Limits, root: Path) -> None:
        self.supervised, self.workers, self.limits, self.root = supervised, workers, limits, root
        self.pending: dict[str, Work] = {}

    @property
    def open(self) -> int:
        return len(self.pending)

    def has_room(self) -> bool:
        return len(self.pending) < 2 * self.workers

    def give(self, work: Work) -> None:
        if work.id in self.pending:
            raise UsageError(f"Two submissions are named {work.id!r}: give each a name of its own.")
        self.pending[work.id] = work
        self.supervised.ask(lab_request(work, self.root), job_of(work, self.limits, self.root))

    def wait(self) -> Iterator[tuple[Work, dict[str, Any]]]:
        answer = self.supervised.answer()
        if "fatal" in answer:
            raise TraceOnceError(answer["fatal"])
        if not answer:
            raise TraceOnceError(f"The grader's supervisor ended early: {RUN_AGAIN}")
        if "result" in answer:
            yield self.pending.pop(answer["result"]["id"]), answer["result"]


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


def name_submission(relative: Path, taken: Container[str]) -> str:
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
) -> Kept:
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
    with held(out) as folder:
        seed = seed_of(folder, seed_file)
        records = Kept(folder)
        with Progress(total=len(notebooks)) as progress, stop_on_signals() as stop:
            todo = _to_grade(
                notebooks, fixed, root, records, progress, lambda work: _key(work, seed, limits, root, tier)
            )
            # For one or two submissions, running the reference first would cost more than it saves.
            first = list(itertools.islice(todo, _FEW + 1))
            works, shared = itertools.chain(first, todo), len(first) > _FEW
            if cluster is None:
                stream = grade_submissions(
                    works, seed=seed, limits=limits, workers=workers, root=root, share_compiled=shared, tier=tier
                )
            else:
                from traceonce.grade.cluster import grade_on_cluster  # importing Dask takes a second

                stream = grade_on_cluster(
                    works,
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
                    while first:
                        with stop.waiting():
                            record = next(stream, None)
                        if record is None:
                            break
                        records.write(record, formats)
                        records.count(record)
                        progress.show(record)
            except BaseException:
                records.write_reports_if_possible(formats)
                raise
            records.write_reports(formats)
        progress.summarise(records.statuses, folder)
    if records.defects:
        name, defect = next(iter(records.defects.items()))
        raise TraceOnceError(
            f"The grader failed on {len(records.defects)} of {len(records)} submissions, first {name}: {defect}"
        )
    return records


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


def _to_grade(
    notebooks: list[tuple[Path, Path]],
    fixed: Lab | None,
    root: Path,
    records: Kept,
    progress: Progress,
    key: Callable[[Work], str],
) -> Iterator[Work]:
    """Read the notebooks one by one, name each in `records`, and give those that have no record yet."""
    taken: set[str] = set()
    labs: dict[str, Lab] = {fixed.name: fixed} if fixed else {}
    for path, relative in notebooks:
        read = read_submission(path, fixed, root=root)
        if read.lab and read.gradable and read.lab not in labs:
            labs[read.lab] = load_lab(read.lab, root=root)
        name = name_submission(relative, taken)
        taken.add(name)
        records.names.append(name)
        work = Work(name, student_of(relative, read.lab or ""), read, labs.get(read.lab or ""))
        if kept := records.find(name, key(work)):
            records.count(kept)
            progress.skip()
        else:
            yield work
