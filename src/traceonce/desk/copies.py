"""The learner's copies: what belongs on a desk, and how a desk follows the course without taking anything away.

A desk holds one copy of each file of the course that a learner opens. The rules, in the order in which they are tried
for each file:

1. Nothing lies at its place: the copy is made. A deleted copy therefore comes back at the next start: deleting a
   notebook is how a learner starts it over, and no link of the index leads nowhere.
2. What lies there is one of the versions that this module wrote, unchanged: it is replaced by the newest version.
3. Anything else is the learner's. It is never written to. The newest version is laid beside it, once, as
   `NAME.new.ipynb`.

"Unchanged" is judged by content, not by bytes or by time: JupyterLab rewrites a notebook's kernel metadata when it only opens it. A
cell that was run has changed, because its outputs are the learner's, except in the index, where they are only a view
of the progress file. The record of written versions is extended before a file is written, so that a start that was
killed at any point leaves nothing that the next start would mistake for the learner's work.
"""

import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any, Literal
from urllib.parse import quote, unquote

from traceonce.errors import TraceOnceError
from traceonce.headings import headings

STATE = ".desk"
"""Name of the hidden folder on the desk that holds what is not the learner's: the record, settings, logs."""

INDEX = PurePosixPath("index.ipynb")

_RECORD = "copies.json"
_RECORD_FORMAT = 1
# What JupyterLab and kernels rewrite on their own, so it says nothing about a learner.
_NOTEBOOK_NOISE = ("kernelspec", "language_info", "widgets")
_CELL_NOISE = ("trusted", "collapsed", "scrolled", "execution", "ExecuteTime")
# Files that sit in the course's folders and are not for learners.
_NOT_FOR_DESKS = ("jupytext.toml",)
_MARKDOWN_LINK = re.compile(r"(?<=\]\()(?P<target>[^()\s]+)(?=(?:\s+\"[^\"]*\")?\))")
_HTML_LINK = re.compile(r"(?<=(?:href|.src)=\")(?P<target>[^\"]+)(?=\")")


@dataclass(frozen=True)
class Sheet:
    """One file as a fresh desk holds it.

    **Arguments**

    - `name`: its place on the desk, relative.
    - `content`: the bytes that are written.
    - `mark`: identifies the content; see `content_mark`.
    """

    name: PurePosixPath
    content: bytes
    mark: str


@dataclass(frozen=True)
class Refreshed:
    """What one refresh did, by place on the desk."""

    made: tuple[PurePosixPath, ...] = ()
    renewed: tuple[PurePosixPath, ...] = ()
    offered: tuple[tuple[PurePosixPath, PurePosixPath], ...] = ()
    """Pairs: the learner's file that was left alone, the newest version laid beside it."""


@dataclass
class _Entry:
    """What is known of one sheet.

    **Arguments**

    - `written`: marks of all versions that were ever written, at the sheet's place or beside it.
    - `laid`: the newest version that was written at its place; the learner's own version grew from it.
    - `offered`: the newest version that was laid beside it.
    """

    written: list[str] = field(default_factory=list)
    laid: str | None = None
    offered: str | None = None


_Record = dict[str, _Entry]


# --- what belongs on a desk -----------------------------------------------------------------------------------------


def sheets(checkout: Path) -> tuple[Sheet, ...]:
    """Every file of a desk, from the course in `checkout`.

    `course/` becomes the desk's top, `labs/` its folder of that name. Of a Jupytext pair only the notebook is taken.

    **Raises** `TraceOnceError` if the course has no index or a notebook cannot be read.
    """
    origins = dict(_origins(checkout))
    if not (checkout / "course" / INDEX).is_file():
        raise TraceOnceError(f"There is no course in {checkout}: get a fresh copy of the repository and start again.")
    places = {origin.relative_to(checkout): name for name, origin in origins.items()}
    raws = {name: origin.read_bytes() for name, origin in origins.items()}
    anchors = {name: _cells_by_heading(raw) for name, raw in raws.items() if name.suffix == ".ipynb"}
    found = []
    for name, origin in sorted(origins.items()):
        raw = raws[name]
        content = _fresh_notebook(origin, raw, checkout, places, anchors) if name.suffix == ".ipynb" else raw
        found.append(Sheet(name, content, content_mark(name, content)))
    return tuple(found)


def _origins(checkout: Path) -> Iterator[tuple[PurePosixPath, Path]]:
    for folder, top in (("course", PurePosixPath()), ("labs", PurePosixPath("labs"))):
        for path in (checkout / folder).rglob("*"):
            inside = PurePosixPath(path.relative_to(checkout / folder).as_posix())
            hidden = any(part.startswith(".") or part == "__pycache__" for part in inside.parts)
            paired = path.suffix == ".py" and path.with_suffix(".ipynb").exists()
            if path.is_file() and not hidden and not paired and path.name not in _NOT_FOR_DESKS:
                yield top / inside, path


def _cells_by_heading(raw: bytes) -> dict[str, str]:
    """Anchor of a heading -> id of its cell."""
    found: dict[str, str] = {}
    for cell in (_parse(raw) or {}).get("cells", []):
        if cell["cell_type"] == "markdown" and "id" in cell:
            for heading in headings(_text(cell["source"])):
                found.setdefault(heading.anchor, cell["id"])
    return found


def _fresh_notebook(
    origin: Path,
    raw: bytes,
    checkout: Path,
    places: Mapping[Path, PurePosixPath],
    anchors: Mapping[PurePosixPath, Mapping[str, str]],
) -> bytes:
    """A notebook without what a run left in it, its links pointing to their places on the desk."""
    notebook = _parse(raw)
    if notebook is None:
        raise TraceOnceError(f"{origin.relative_to(checkout)} is not a notebook: restore it from version control.")
    here = places[origin.relative_to(checkout)]
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = []
            cell["execution_count"] = None
        elif cell["cell_type"] == "markdown":
            source = _relink(_text(cell["source"]), origin.parent, here, checkout, places, anchors)
            cell["source"] = source.splitlines(keepends=True)
        for noise in _CELL_NOISE:
            cell.get("metadata", {}).pop(noise, None)
    # Pairing belongs to authors: on a desk it would write a second file for each notebook.
    for key in ("widgets", "jupytext"):
        notebook.get("metadata", {}).pop(key, None)
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode()


def _relink(
    text: str,
    folder: Path,
    here: PurePosixPath,
    checkout: Path,
    places: Mapping[Path, PurePosixPath],
    anchors: Mapping[PurePosixPath, Mapping[str, str]],
) -> str:
    """Point relative links at files of the course to their places on the desk; leave every other link as it is."""

    def moved(match: re.Match[str]) -> str:
        target, hash_sign, anchor = match["target"].partition("#")
        if not target and anchor:
            return f"{quote(here.name)}#{_named(anchor, anchors.get(here, {}))}"
        if not target or "://" in target or target.startswith(("/", "mailto:")):
            return match[0]
        aimed = Path(os.path.normpath(folder / unquote(target)))
        if not aimed.is_relative_to(checkout) or (place := places.get(aimed.relative_to(checkout))) is None:
            return match[0]
        return quote(os.path.relpath(place, here.parent)) + hash_sign + _named(anchor, anchors.get(place, {}))

    return _HTML_LINK.sub(moved, _MARKDOWN_LINK.sub(moved, text))


def _named(anchor: str, cells: Mapping[str, str]) -> str:
    """An anchor as JupyterLab finds it in a notebook that it has just opened: by the cell, not by the heading.

    It looks for a heading only among cells that are drawn or listed, and they are not when a notebook was just opened. Only
    JupyterLab knows this form, so the course has the plain one.
    """
    cell = cells.get(unquote(anchor))
    return f"cell-id={cell}" if cell else anchor


# --- telling versions apart -----------------------------------------------------------------------------------------


def content_mark(name: PurePosixPath, content: bytes) -> str:
    """A digest that is equal for two versions of a file when nothing in them that a learner could miss differs."""
    notebook = _parse(content) if name.suffix == ".ipynb" else None
    if notebook is None:
        return "bytes:" + hashlib.sha256(content).hexdigest()
    metadata = {key: value for key, value in notebook.get("metadata", {}).items() if key not in _NOTEBOOK_NOISE}
    essence = {
        "metadata": metadata,
        "cells": [_cell_essence(cell, outputs=name != INDEX) for cell in notebook["cells"]],
    }
    canonical = json.dumps(essence, sort_keys=True, ensure_ascii=True)
    return "notebook:" + hashlib.sha256(canonical.encode()).hexdigest()


def _cell_essence(cell: Mapping[str, Any], *, outputs: bool) -> dict[str, Any]:
    essence = {
        key: value for key, value in cell.items() if key not in ("execution_count", "outputs", "metadata", "source")
    }
    metadata = cell.get("metadata", {})
    essence["metadata"] = {key: value for key, value in metadata.items() if key not in _CELL_NOISE}
    essence["source"] = _text(cell.get("source", ""))
    if outputs:
        essence["outputs"] = cell.get("outputs", [])
    return essence


def _parse(content: bytes) -> dict[str, Any] | None:
    """The notebook in `content`, or `None` where there is none: then only its bytes can be compared."""
    try:
        notebook = json.loads(content)
    except ValueError:
        return None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("metadata", {}), dict):
        return None
    cells = notebook.get("cells")
    if not isinstance(cells, list):
        return None
    for cell in cells:
        if not isinstance(cell, dict) or not isinstance(cell.get("metadata", {}), dict) or "cell_type" not in cell:
            return None
        if not isinstance(cell.get("source", ""), str | list):
            return None
    return notebook


def _text(source: str | list[Any]) -> str:
    return source if isinstance(source, str) else "".join(map(str, source))


# --- bringing a desk up to date -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Action:
    """One write that a refresh owes: `kind` is the field of `Refreshed` that it counts under."""

    kind: Literal["made", "renewed", "offered"]
    sheet: Sheet
    place: PurePosixPath


def refresh(desk: Path, wanted: Iterable[Sheet]) -> Refreshed:
    """Make or renew the copies on `desk`; see the rules at the top of this module.

    The caller makes sure that no other refresh of the same desk runs.

    **Raises** `OSError` where the desk cannot be written. What was done until then is sound.
    """
    wanted = tuple(wanted)
    state = desk / STATE
    state.mkdir(parents=True, exist_ok=True)
    for leftover in state.glob("*.part"):
        leftover.unlink()
    record = _read_record(state)
    actions = []
    for sheet in wanted:
        entry = record.setdefault(str(sheet.name), _Entry())
        if action := _plan(desk, sheet, entry):
            actions.append(action)
            if sheet.mark not in entry.written:
                entry.written.append(sheet.mark)
    _write_record(state, record)

    done = [action for action in actions if _carry_out(desk, action, record[str(action.sheet.name)])]
    _write_record(state, record)
    return Refreshed(
        made=tuple(action.place for action in done if action.kind == "made"),
        renewed=tuple(action.place for action in done if action.kind == "renewed"),
        offered=tuple((action.sheet.name, action.place) for action in done if action.kind == "offered"),
    )


def _plan(desk: Path, sheet: Sheet, entry: _Entry) -> _Action | None:
    """What to do about one sheet, or `None` when all is well. Recognises a current copy that the record does not know."""
    mark = _mark_at(desk, sheet.name, sheet)
    if mark is None:
        return _Action("made", sheet, sheet.name)
    if mark == sheet.mark:
        entry.laid = mark
        if mark not in entry.written:
            entry.written.append(mark)
        return None
    if mark in entry.written:
        return _Action("renewed", sheet, sheet.name)
    if sheet.mark in (entry.laid, entry.offered):
        # The learner works on the newest version already, or was offered it once: a deleted offer does not come back.
        return None
    beside = (place for place in _places_beside(sheet.name) if not _is_touched(desk, place, sheet, entry))
    return _Action("offered", sheet, next(beside))


def _carry_out(desk: Path, action: _Action, entry: _Entry) -> bool:
    """Write one sheet in one step; `False` if the learner put something there since it was planned."""
    target = desk / action.place
    target.parent.mkdir(parents=True, exist_ok=True)
    part = _write_part(desk / STATE, action.sheet.content)
    try:
        if _is_touched(desk, action.place, action.sheet, entry):
            return False
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    if action.kind == "offered":
        entry.offered = action.sheet.mark
    else:
        entry.laid = action.sheet.mark
    return True


def _places_beside(name: PurePosixPath) -> Iterator[PurePosixPath]:
    yield name.with_name(f"{name.stem}.new{name.suffix}")
    for number in count(2):
        yield name.with_name(f"{name.stem}.new{number}{name.suffix}")


def _is_touched(desk: Path, place: PurePosixPath, sheet: Sheet, entry: _Entry) -> bool:
    mark = _mark_at(desk, place, sheet)
    return mark is not None and mark not in entry.written


def _mark_at(desk: Path, place: PurePosixPath, sheet: Sheet) -> str | None:
    """The mark of what lies at a place; `None` if there is nothing, or an empty file, which holds nobody's work."""
    try:
        content = (desk / place).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        return "a folder"
    except PermissionError:
        return "not readable"
    return content_mark(sheet.name, content) if content else None


def _write_part(state: Path, content: bytes) -> Path:
    # The desk's own state folder is on the desk's file system, so the rename that follows is atomic.
    descriptor, name = tempfile.mkstemp(dir=state, suffix=".part")
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    umask = os.umask(0)
    os.umask(umask)
    os.chmod(name, 0o666 & ~umask)
    return Path(name)


def _read_record(state: Path) -> _Record:
    """The record; empty where it is missing or damaged, which only makes every older copy count as the learner's."""
    try:
        stored = json.loads((state / _RECORD).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    if (
        not isinstance(stored, dict)
        or stored.get("format") != _RECORD_FORMAT
        or not isinstance(stored.get("sheets"), dict)
    ):
        return {}
    record = {}
    for name, entry in stored["sheets"].items():
        if isinstance(entry, dict) and isinstance(entry.get("written"), list):
            record[name] = _Entry(list(map(str, entry["written"])), entry.get("laid"), entry.get("offered"))
    return record


def _write_record(state: Path, record: _Record) -> None:
    known = {name: asdict(entry) for name, entry in sorted(record.items()) if entry.written}
    content = json.dumps({"format": _RECORD_FORMAT, "sheets": known}, indent=1).encode()
    path = state / _RECORD
    if not path.is_file() or path.read_bytes() != content:
        os.replace(_write_part(state, content), path)
