"""A lab as the grader and the author see it, and what a submission holds of it.

Everything here is plain standard library, because the supervisor imports it, and it reads files that strangers wrote:
`read_submission` never raises on what is in a file.
"""

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.percent import read_percent

CellKind = Literal["markdown", "given", "solution", "test"]
DiagnosisKind = Literal[
    "unreadable",
    "empty",
    "too_large",
    "not_json",
    "not_notebook",
    "unknown_lab",
    "wrong_lab",
    "missing",
    "duplicated",
    "retyped",
    "not_text",
    "reordered",
]

SIZE_CAP = 20 * 2**20
"""Bytes of a submission that are read at all; a larger file is diagnosed, not opened."""

PARTS_CAP = 2_000_000
"""Brackets and commas in a submission: bounds what its JSON may cost in memory once it is parsed."""

FOR_SHOW = "for-show"
"""The tag of a given cell that a learner is to see, and that nothing else rests on."""

_LAB_NAME = re.compile(r"lab\d\d_[a-z0-9_]+")
_WHOLE_FILE = frozenset({"unreadable", "empty", "too_large", "not_json", "not_notebook", "unknown_lab", "wrong_lab"})


@dataclass(frozen=True)
class Cell:
    """One cell of a lab.

    **Arguments**

    - `grade_id`: nbgrader's name of the cell; empty for a cell that has none.
    - `kind`: `markdown`, `given` (the instructor's code), `solution` (the learner's) or `test` (visible asserts).
    - `source`: the text of the cell. In a lab from ``solutions/`` a solution cell holds the reference.
    - `points`: what nbgrader's metadata gives for it.
    - `index`: its place in the notebook, from 0.
    - `for_show`: whether it is a given cell with the tag `FOR_SHOW`. Grading leaves it out, unless a submission reads one of its names.
    """

    grade_id: str
    kind: CellKind
    source: str
    points: float = 0.0
    index: int = 0
    for_show: bool = False

    def as_source(self) -> dict[str, Any]:
        """What a process that runs it is told; see `execution.Source`."""
        return {"grade_id": self.grade_id, "kind": self.kind, "text": self.source, "for_show": self.for_show}


@dataclass(frozen=True)
class Lab:
    """A lab: its name and its cells in order."""

    name: str
    cells: tuple[Cell, ...]

    @property
    def solutions(self) -> tuple[Cell, ...]:
        """The cells that a learner fills in."""
        return tuple(cell for cell in self.cells if cell.kind == "solution")

    @property
    def tests(self) -> tuple[Cell, ...]:
        """The cells that hold visible asserts."""
        return tuple(cell for cell in self.cells if cell.kind == "test")

    @property
    def code(self) -> tuple[Cell, ...]:
        """What grading runs, in order: given cells and solutions. Visible asserts are the learner's, and give no points."""
        return tuple(cell for cell in self.cells if cell.kind in ("given", "solution"))

    def answered(self, answers: Mapping[str, str], *, visible: bool = False) -> tuple[Cell, ...]:
        """What is run of a submission, in order: given cells, and the solution cells that it has, with its text.

        With `visible`, the cells with visible asserts as well, and nothing that is only for show.
        """
        kinds = ("given", "test") if visible else ("given",)
        return tuple(
            replace(cell, source=answers.get(cell.grade_id, cell.source), for_show=cell.for_show and not visible)
            for cell in self.cells
            if cell.kind in kinds or (cell.kind == "solution" and cell.grade_id in answers)
        )

    def __getitem__(self, grade_id: str) -> Cell:
        """The cell with this `grade_id`; `KeyError` where there is none."""
        for cell in self.cells:
            if cell.grade_id and cell.grade_id == grade_id:
                return cell
        raise KeyError(grade_id)


@dataclass(frozen=True)
class Diagnosis:
    """One thing that is wrong with a submission: its kind, a sentence for the learner, and the cell it is about."""

    kind: DiagnosisKind
    sentence: str
    grade_id: str = ""

    @property
    def whole_file(self) -> bool:
        """Whether nothing of the file can be graded."""
        return self.kind in _WHOLE_FILE


@dataclass(frozen=True)
class Submission:
    """What a submitted notebook holds.

    **Arguments**

    - `path`: the file.
    - `lab`: the lab it belongs to; `None` where that cannot be told.
    - `cells`: source of each solution cell that was found, by `grade_id`, in the lab's order.
    - `diagnoses`: what is wrong with it, most serious first.
    - `own_code_cells`: code cells that the learner added. They are not graded; a helper defined there is missed.
    """

    path: Path
    lab: str | None
    cells: Mapping[str, str]
    diagnoses: tuple[Diagnosis, ...] = ()
    own_code_cells: int = 0

    @property
    def gradable(self) -> bool:
        """Whether anything of it can be graded."""
        return bool(self.cells) and not any(found.whole_file for found in self.diagnoses)


# Where the labs are ---------------------------------------------------------------------------------------------------


def find_root(start: Path | None = None) -> Path:
    """The folder that holds the labs: ``solutions/``, or in a learner's copy of the course ``labs/`` alone.

    The checkout that holds this package comes first: a grader started inside a folder of submissions must not take a
    ``solutions/`` that came with one of them. Without such a checkout, `start` (the current folder by default) and
    its parents are searched.

    **Raises**: `TraceOnceError` where none is found.
    """
    package_checkout = Path(__file__).resolve().parents[3]
    here = (start or Path.cwd()).resolve()
    for folder in (package_checkout, here, *here.parents):
        if _holds_labs(folder):
            return folder
    raise TraceOnceError(
        f"No course is found at {here} or above it: run this inside a checkout of the course, "
        "which has the labs in a folder solutions/ or labs/."
    )


def _holds_labs(folder: Path) -> bool:
    return bool(_sources(folder))


def lab_names(root: Path | None = None) -> tuple[str, ...]:
    """The names of all labs of the course, sorted."""
    return tuple(sorted(_sources(root or find_root())))


def _sources(root: Path) -> dict[str, Path]:
    """The file of each lab by its name. A learner's copy has no solutions: there a lab is its starter."""
    solutions = {path.stem: path for path in (root / "solutions").glob("lab*.py") if _LAB_NAME.fullmatch(path.stem)}
    starters = {path.stem: path for path in (root / "labs").glob("lab*.ipynb") if _LAB_NAME.fullmatch(path.stem)}
    return solutions or starters


# Reading a lab --------------------------------------------------------------------------------------------------------


def load_lab(name_or_path: str | Path, *, root: Path | None = None) -> Lab:
    """A lab by its name (from ``solutions/<name>.py``, see `find_root`), or from a ``.py`` or ``.ipynb`` file.

    **Raises**: `UsageError` where there is no such lab; `TraceOnceError` where the file is not a lab.
    """
    path = Path(name_or_path)
    if isinstance(name_or_path, str) and not path.suffix and path.name == name_or_path:
        names = lab_names(root)
        if name_or_path not in names:
            raise UsageError(f"There is no lab {name_or_path!r}: the labs are {', '.join(names) or 'none yet'}.")
        path = _sources(root or find_root())[name_or_path]
    if not path.is_file():
        raise UsageError(f"There is no lab at {path}: give a lab's name, or the path of its .py or .ipynb.")
    raw = _cells_of_script(path) if path.suffix == ".py" else _cells_of_notebook(path)
    cells = tuple(_cell(path, index, *parts) for index, parts in enumerate(raw))
    _refuse_faulty_lab(path, cells)
    return Lab(name=path.stem, cells=cells)


def _cells_of_script(path: Path) -> list[tuple[str, str, dict[str, Any]]]:
    cells = read_percent(path.read_text("utf-8"), path.name)
    metadata = [cell.metadata.get("nbgrader", {}) for cell in cells]
    if wrong := [cell.line for cell, value in zip(cells, metadata, strict=True) if not isinstance(value, dict)]:
        raise TraceOnceError(f"{path}, line {wrong[0]}: nbgrader metadata must be an object with grade_id.")
    tags = [cell.metadata.get("tags", []) for cell in cells]
    return [
        (cell.cell_type, cell.source, value | {"tags": tagged})
        for cell, value, tagged in zip(cells, metadata, tags, strict=True)
    ]


def _cells_of_notebook(path: Path) -> list[tuple[str, str, dict[str, Any]]]:
    content = _parse(_read_capped(path))
    if isinstance(content, Diagnosis):
        raise TraceOnceError(f"{path} is not a lab: {content.sentence}")
    return [(cell_type, source, metadata) for cell_type, source, metadata in _notebook_cells(content)]


def _cell(path: Path, index: int, cell_type: str, source: str, metadata: Mapping[str, Any]) -> Cell:
    if metadata.get("solution") and cell_type == "code":
        kind: CellKind = "solution"
    elif cell_type != "code":
        kind = "markdown"
    elif metadata.get("grade"):
        kind = "test"
    else:
        kind = "given"
    points = metadata.get("points", 0)
    if isinstance(points, bool) or not isinstance(points, int | float) or not math.isfinite(points) or points < 0:
        raise TraceOnceError(f"{path}: cell {index} has points {points!r}: write a number that is not negative.")
    grade_id = metadata.get("grade_id", "")
    if not isinstance(grade_id, str) or (kind in ("solution", "test") and not grade_id):
        raise TraceOnceError(f"{path}: cell {index} ({kind}) has no grade_id: give it one in its nbgrader metadata.")
    tags = metadata.get("tags")
    for_show = kind == "given" and isinstance(tags, list) and FOR_SHOW in tags
    return Cell(grade_id=grade_id, kind=kind, source=source, points=float(points), index=index, for_show=for_show)


def _refuse_faulty_lab(path: Path, cells: tuple[Cell, ...]) -> None:
    named = [cell.grade_id for cell in cells if cell.grade_id]
    repeated = sorted({grade_id for grade_id in named if named.count(grade_id) > 1})
    if repeated:
        raise TraceOnceError(f"{path}: grade_id {repeated[0]!r} stands in two cells: rename one of them.")
    if not any(cell.kind == "solution" for cell in cells):
        raise TraceOnceError(f"{path}: no cell has nbgrader metadata with solution true, so it is not a lab.")


# Reading a submission -------------------------------------------------------------------------------------------------


def read_submission(
    path: str | Path, lab: Lab | str | None = None, *, root: Path | None = None, size_cap: int = SIZE_CAP
) -> Submission:
    """The solution cells of a submitted notebook, and a diagnosis of everything that is wrong with it.

    Which lab it belongs to is read from its metadata (``{"traceonce": {"lab": "lab01_pure_functions"}}``). Where that
    says nothing, `lab` decides; without `lab`, a lab's name in the file's name decides. A notebook that names one lab
    where `lab` is another is diagnosed as `wrong_lab`.

    Never raises on what the file holds; a repeated key in an object counts by its last value, as in Jupyter.

    **Raises**: `UsageError` where `lab` names no lab.
    """
    path = Path(path)
    wanted = load_lab(lab, root=root) if isinstance(lab, str) else lab
    content = _parse(_read_capped(path, size_cap))
    if isinstance(content, Diagnosis):
        return Submission(path, wanted.name if wanted else None, MappingProxyType({}), (content,))
    named = _lab_in_metadata(content)
    if wanted and named and named != wanted.name:
        sentence = f"This notebook is {_shown(named)}, and {wanted.name} was asked for: hand in the right file."
        return Submission(path, named, MappingProxyType({}), (Diagnosis("wrong_lab", sentence),))
    if wanted is None:
        found = _lab_by_name(named, path, root)
        if isinstance(found, Diagnosis):
            return Submission(path, None, MappingProxyType({}), (found,))
        wanted = found
    return _match(path, wanted, content)


def _read_capped(path: Path, size_cap: int = SIZE_CAP) -> bytes | Diagnosis:
    """The file's bytes; a link, a folder, a pipe or a file over the cap is diagnosed without being read."""
    try:
        # O_NONBLOCK: opening a named pipe must not wait for a writer. O_NOFOLLOW: a link in a submission could name
        # any file of the grader's.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = "it is a link" if path.is_symlink() else str(getattr(error, "strerror", None) or error)
        return Diagnosis("unreadable", f"The file cannot be read ({why}): hand in the notebook itself.")
    try:
        about = os.fstat(handle)
        if not stat.S_ISREG(about.st_mode):
            return Diagnosis("unreadable", "This is not a plain file: hand in the notebook itself.")
        with open(handle, "rb", closefd=False) as file:
            content = b"" if about.st_size > size_cap else file.read(size_cap + 1)
    except OSError as error:
        return Diagnosis("unreadable", f"The file cannot be read ({error.strerror}): hand it in again.")
    finally:
        os.close(handle)
    if about.st_size > size_cap or len(content) > size_cap:
        return Diagnosis(
            "too_large",
            f"The file is over {_megabytes(size_cap)}: clear the outputs (Edit, Clear Outputs of All Cells) and save.",
        )
    return content


def _megabytes(size: int) -> str:
    return f"{size / 2**20:g} MB"


def _parse(content: bytes | Diagnosis) -> dict[str, Any] | Diagnosis:
    """A notebook's JSON, checked as far as `_notebook_cells` relies on it."""
    if isinstance(content, Diagnosis):
        return content
    if not content.strip():
        return Diagnosis("empty", "The file is empty: save the notebook and hand it in again.")
    if sum(content.count(mark) for mark in (b"[", b"{", b",")) > PARTS_CAP:
        return Diagnosis("too_large", "The file has more parts than a notebook has: clear the outputs and save.")
    try:
        notebook = json.loads(content.decode("utf-8-sig"))
    except RecursionError:
        return Diagnosis("not_json", "The file is nested too deeply to be a notebook: hand in the .ipynb of the lab.")
    except ValueError as error:  # covers bad UTF-8, bad JSON and integers of absurd length
        where = f" (line {error.lineno})" if isinstance(error, json.JSONDecodeError) else ""
        return Diagnosis(
            "not_json", f"The file is not valid JSON{where}, so it is not a notebook: hand in the .ipynb of the lab."
        )
    if not isinstance(notebook, dict):
        return Diagnosis("not_notebook", "The file is JSON and not a notebook: hand in the .ipynb of the lab.")
    if "cells" not in notebook and isinstance(notebook.get("worksheets"), list):
        return Diagnosis("not_notebook", "The notebook has an old format: open it in JupyterLab and save it again.")
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return Diagnosis("not_notebook", "The file has no list of cells: hand in the .ipynb of the lab.")
    if not cells:
        return Diagnosis("empty", "The notebook has no cells: save it and hand it in again.")
    return notebook


def _notebook_cells(notebook: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Type, source, and nbgrader metadata with tags, of each cell; wrong types inside a cell become empty ones."""
    for cell in notebook["cells"]:
        source = cell.get("source", "")
        if isinstance(source, list):
            source = "".join(line for line in source if isinstance(line, str))
        metadata = cell.get("metadata")
        metadata = metadata if isinstance(metadata, dict) else {}
        nbgrader = metadata.get("nbgrader")
        yield (
            cell["cell_type"] if isinstance(cell.get("cell_type"), str) else "",
            source if isinstance(source, str) else "",
            (nbgrader if isinstance(nbgrader, dict) else {}) | {"tags": metadata.get("tags")},
        )


def _lab_in_metadata(notebook: Mapping[str, Any]) -> str | None:
    metadata = notebook.get("metadata")
    ours = metadata.get("traceonce") if isinstance(metadata, dict) else None
    name = ours.get("lab") if isinstance(ours, dict) else None
    return name if isinstance(name, str) and name else None


def _lab_by_name(named: str | None, path: Path, root: Path | None) -> Lab | Diagnosis:
    """The lab that the metadata or the file's name says. Only names of the course are looked up, never a path."""
    names = lab_names(root)
    if named is not None:
        matching = [name for name in names if name == named]
    else:
        matching = sorted((name for name in names if name in path.stem), key=len, reverse=True)
    if matching:
        return _cached_lab(matching[0], root)
    what = f"It says that it is {_shown(named)}, which" if named is not None else f"Its name, {_shown(path.name)},"
    return Diagnosis("unknown_lab", f"{what} is no lab of this course ({', '.join(names)}): name the lab with --lab.")


def _cached_lab(name: str, root: Path | None) -> Lab:
    source = _sources(root or find_root())[name]
    return _load_version(source, source.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _load_version(source: Path, modified: int) -> Lab:
    del modified  # part of the key only: a lab that was edited is read again
    return load_lab(source)


def _shown(text: str | None, limit: int = 60) -> str:
    """A stranger's text, safe and short enough for a sentence."""
    shown = ascii(text or "")[1:-1]
    return shown if len(shown) <= limit else shown[:limit] + "..."


def _match(path: Path, lab: Lab, notebook: Mapping[str, Any]) -> Submission:
    """The submission's solution cells beside the lab's."""
    copies: dict[str, list[tuple[str, str]]] = {cell.grade_id: [] for cell in lab.solutions}
    known = {cell.grade_id for cell in lab.cells if cell.grade_id}
    order: list[str] = []
    own_code_cells = 0
    for cell_type, source, metadata in _notebook_cells(notebook):
        grade_id = metadata.get("grade_id")
        if not isinstance(grade_id, str):
            grade_id = ""
        if grade_id in copies:
            copies[grade_id].append((cell_type, source))
            if grade_id not in order:
                order.append(grade_id)
        elif cell_type == "code" and grade_id not in known and source.strip():
            own_code_cells += 1
    cells: dict[str, str] = {}
    diagnoses: list[Diagnosis] = []
    for grade_id, found in copies.items():
        taken = _one_of(grade_id, found)
        if isinstance(taken, Diagnosis):
            diagnoses.append(taken)
        else:
            cells[grade_id] = taken
    if order != [grade_id for grade_id in copies if grade_id in order]:
        diagnoses.append(
            Diagnosis("reordered", "The solution cells are not in the lab's order. They are graded in the lab's order.")
        )
    given_code_without_id = sum(1 for cell in lab.cells if cell.kind == "given" and not cell.grade_id)
    return Submission(
        path,
        lab.name,
        MappingProxyType(cells),
        tuple(diagnoses),
        max(0, own_code_cells - given_code_without_id),
    )


def _one_of(grade_id: str, found: list[tuple[str, str]]) -> str | Diagnosis:
    """The source to grade for one solution cell, or why there is none."""
    if not found:
        return Diagnosis(
            "missing",
            f"The cell {grade_id!r} is not in the notebook: copy your answer into that cell of a fresh lab notebook.",
            grade_id,
        )
    sources = {source for _, source in found}
    if len(sources) > 1:
        return Diagnosis(
            "duplicated",
            f"The notebook has {len(found)} different cells {grade_id!r}, and which one counts cannot be told: "
            "keep one and delete the others.",
            grade_id,
        )
    cell_type, source = found[0]
    if cell_type != "code":
        return Diagnosis(
            "retyped", f"The cell {grade_id!r} is no longer a code cell: make it one (Esc, then Y).", grade_id
        )
    try:
        source.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate: JSON can spell it, no file and no pipe can carry it
        return Diagnosis(
            "not_text", f"The cell {grade_id!r} has characters that are not text: type it again.", grade_id
        )
    return source
