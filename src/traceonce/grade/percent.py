"""Read a notebook's source from a ``.py`` in Jupytext's percent format, with nothing but the standard library.

Jupytext itself takes seconds to import, and the supervisor reads a lab at every start. What is understood here is the
part of the format that the course uses; anything else is refused with its line, never read differently than Jupytext
reads it (`traceonce author build --check` reads every source both ways).
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from traceonce.errors import TraceOnceError

_MARKER = re.compile(r"# %%(?:\s(?P<options>.*))?$")
_LOOSE_MARKER = re.compile(r"\s*#\s*%%+(\s|$)")
_TYPE = re.compile(r"\[(markdown|md|raw)\]")
_KEY = re.compile(r"[A-Za-z0-9_.@/-]+(?==)")
_MAGIC = re.compile(r"\s*# (%{1,3}|!)[A-Za-z]")
_FENCE = re.compile(r"```|~~~")


@dataclass(frozen=True)
class SourceCell:
    """One cell of a source: its type, text, metadata, and the line of its marker in the file (from 1)."""

    cell_type: Literal["code", "markdown", "raw"]
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)
    line: int = 0


def read_percent(text: str, name: str) -> tuple[SourceCell, ...]:
    """The cells of a percent-format text; `name` stands for the file in messages.

    **Raises**: `TraceOnceError` with the line that cannot be read.
    """
    lines = text.splitlines()
    start = _skip_header(lines)
    cells = []
    marker: int | None = None
    fenced = False
    for number in range(start, len(lines) + 1):
        at_end = number == len(lines)
        if not at_end and marker is not None and _is_markdown(lines[marker]) and _FENCE.match(lines[number][2:]):
            fenced = not fenced
        if not at_end and (fenced or not _LOOSE_MARKER.match(lines[number])):
            if marker is None and lines[number].strip():
                raise TraceOnceError(f"{name}, line {number + 1}: text before the first cell; begin it with '# %%'.")
            continue
        if marker is not None:
            cells.append(_cell(lines[marker:number], marker + 1, name))
        marker, fenced = number, False
    return tuple(cells)


def read_header(text: str) -> dict[str, str]:
    """The ``# key: value`` lines between the two ``# ---`` at the top of a text; empty where there are none."""
    lines = text.splitlines()
    pairs = (line.removeprefix("#").partition(":") for line in lines[: _skip_header(lines)] if line != "# ---")
    return {key.strip(): value.strip() for key, colon, value in pairs if colon}


def _skip_header(lines: list[str]) -> int:
    """How many lines a header between ``# ---`` and ``# ---`` takes at the top."""
    if lines and lines[0] == "# ---" and "# ---" in lines[1:]:
        return lines.index("# ---", 1) + 1
    return 0


def _is_markdown(marker: str) -> bool:
    return "[markdown]" in marker or "[md]" in marker


def _cell(lines: list[str], number: int, name: str) -> SourceCell:
    marker = _MARKER.match(lines[0])
    if marker is None:
        raise TraceOnceError(f"{name}, line {number}: write the cell's marker as '# %%' at the start of the line.")
    cell_type, metadata = _options(marker["options"] or "", f"{name}, line {number}")
    body = lines[1:]
    while body and not body[-1]:
        body.pop()
    if cell_type == "code":
        source = [line.replace("# ", "", 1) if _MAGIC.match(line) else line for line in body]
        return SourceCell("code", "\n".join(source), metadata, number)
    for offset, line in enumerate(body, start=number + 1):
        if line and not line.startswith("#"):
            raise TraceOnceError(f"{name}, line {offset}: begin every line of a {cell_type} cell with '# '.")
    source = [line.removeprefix("# ") if line.startswith("# ") else line.removeprefix("#") for line in body]
    return SourceCell(cell_type, "\n".join(source), metadata, number)


def _options(text: str, where: str) -> tuple[Literal["code", "markdown", "raw"], dict[str, Any]]:
    """Type and metadata in a marker: ``[markdown] tags=["a"] nbgrader={"grade_id": "b"}``."""
    rest = text.strip()
    cell_type: Literal["code", "markdown", "raw"] = "code"
    if found := _TYPE.match(rest):
        cell_type = "raw" if found[1] == "raw" else "markdown"
        rest = rest[found.end() :].lstrip()
    metadata: dict[str, Any] = {}
    decoder = json.JSONDecoder()
    while rest:
        key = _KEY.match(rest)
        if key is None:
            raise TraceOnceError(f"{where}: write the metadata of a cell as key=value with a JSON value, not {rest!r}.")
        try:
            metadata[key[0]], end = decoder.raw_decode(rest, key.end() + 1)
        except json.JSONDecodeError as error:
            raise TraceOnceError(f"{where}: the value of {key[0]} is not JSON ({error.msg}).") from error
        rest = rest[end:].lstrip()
    return cell_type, metadata
