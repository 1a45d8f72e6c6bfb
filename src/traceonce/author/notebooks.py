"""A source and its outputs become one canonical notebook: the same input gives the same bytes.

Notebooks are plain JSON objects here. The libraries that know more about them take seconds to import and are needed
only to run one (`execution`) and to make a starter (`starters`).
"""

import hashlib
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from traceonce.author.course import CELL_METADATA, Pair
from traceonce.errors import TraceOnceError
from traceonce.grade.percent import SourceCell

type Json = dict[str, Any]

_KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
_CELL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


def digest(parts: Sequence[object]) -> str:
    """A short hash of a list of plain values."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def code_digest(cells: Sequence[SourceCell]) -> str:
    """What the outputs of a notebook depend on: its code cells, their order, and which of them may raise."""
    return digest([(cell.source, may_raise(cell)) for cell in cells if cell.cell_type == "code"])


def text_digest(cells: Sequence[tuple[str, str]]) -> str:
    """Type and source of every cell."""
    return digest([list(cell) for cell in cells])


def may_raise(cell: SourceCell) -> bool:
    """Whether an exception in this cell is what it is there to show."""
    return "raises-exception" in cell.metadata.get("tags", [])


def assemble(pair: Pair, outputs: Sequence[list[Json]] | None) -> Json:
    """The notebook of a pair.

    **Arguments**

    - `pair`: its source gives the cells.
    - `outputs`: the outputs of each code cell in order; `None` makes a notebook that was never run.
    """
    code_cells = [cell for cell in pair.cells if cell.cell_type == "code"]
    if outputs is not None and len(outputs) != len(code_cells):
        raise ValueError(f"{len(outputs)} lists of outputs for {len(code_cells)} code cells")
    ours: Json = {"lab": pair.name} if pair.kind == "lab" else {}
    if outputs is not None:
        ours["executed"] = code_digest(pair.cells)
        ours["sources"] = text_digest([(cell.cell_type, cell.source) for cell in pair.cells])
    cells = []
    kept = iter(outputs or ())
    count = 0
    for cell, cell_id in zip(pair.cells, _cell_ids(pair.cells), strict=True):
        made: Json = {
            "cell_type": cell.cell_type,
            "id": cell_id,
            "metadata": {key: cell.metadata[key] for key in CELL_METADATA if key in cell.metadata},
            "source": cell.source,
        }
        if cell.cell_type == "code":
            ran = outputs is not None and bool(cell.source.strip())
            count += ran
            made["execution_count"] = count if ran else None
            made["outputs"] = clean_outputs(next(kept, []), count)
        cells.append(made)
    return {
        "cells": cells,
        "metadata": {"kernelspec": _KERNEL, "language_info": {"name": "python"}, "traceonce": ours},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _cell_ids(cells: Sequence[SourceCell]) -> list[str]:
    """An id for each cell that depends on the source alone: its grade_id, or a hash of its text."""
    ids: list[str] = []
    for cell in cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        base = grade_id if _CELL_ID.fullmatch(grade_id) else digest([cell.cell_type, cell.source])[:8]
        cell_id, copy = base, 1
        while cell_id in ids:
            copy += 1
            cell_id = f"{base}-{copy}"
        ids.append(cell_id)
    return ids


def clean_outputs(outputs: Sequence[Json], count: int) -> list[Json]:
    """Outputs without what changes from run to run or from machine to machine.

    A view of a live widget goes (its state is not stored; its other forms stay), a traceback is cut to its last line
    (its frames name files of the machine), and pieces of one stream are joined (how they are cut depends on timing).
    """
    cleaned: list[Json] = []
    for output in outputs:
        kind = output["output_type"]
        if kind == "stream":
            text = _joined(output["text"])
            if cleaned and cleaned[-1].get("name") == output["name"]:
                cleaned[-1]["text"] += text
            else:
                cleaned.append({"name": output["name"], "output_type": "stream", "text": text})
        elif kind == "error":
            line = f"{output['ename']}: {output['evalue']}"
            cleaned.append({key: output[key] for key in ("output_type", "ename", "evalue")} | {"traceback": [line]})
        else:
            data = {mime: _joined(value) for mime, value in output["data"].items() if mime != _WIDGET_VIEW}
            made: Json = {"data": data, "metadata": output.get("metadata", {}), "output_type": kind}
            if kind == "execute_result":
                made["execution_count"] = count
            cleaned.append(made)
    return cleaned


def _joined(text: Any) -> Any:
    """Text that may be stored as a list of lines, as one string; anything else as it is."""
    return "".join(text) if isinstance(text, list) and all(isinstance(line, str) for line in text) else text


def dumps(notebook: Json) -> str:
    """The text of a notebook as nbformat writes it, so that saving it in JupyterLab changes nothing."""
    cells = []
    for cell in notebook["cells"]:
        stored = dict(cell, source=_lines(cell["source"]))
        if "outputs" in cell:
            stored["outputs"] = [_stored_output(output) for output in cell["outputs"]]
        cells.append(stored)
    whole = dict(notebook, cells=cells)
    return json.dumps(whole, ensure_ascii=False, indent=1, sort_keys=True, separators=(",", ": ")) + "\n"


def _stored_output(output: Json) -> Json:
    if output["output_type"] == "stream":
        return dict(output, text=_lines(output["text"]))
    if "data" not in output:
        return output
    is_json = re.compile(r"application/(.*\+)?json$").match
    return dict(
        output, data={mime: value if is_json(mime) else _lines(value) for mime, value in output["data"].items()}
    )


def _lines(text: Any) -> Any:
    return text.splitlines(keepends=True) if isinstance(text, str) else text


def read_stored(path: Path) -> Json | None:
    """A notebook from the tree; `None` where there is none yet.

    **Raises**: `TraceOnceError` where the file is not a notebook.
    """
    if not path.is_file():
        return None
    try:
        notebook = json.loads(path.read_text("utf-8"))
        for cell in notebook["cells"]:
            cell["source"] = _joined(cell["source"])
            for output in cell.get("outputs", []):
                if "text" in output:
                    output["text"] = _joined(output["text"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise TraceOnceError(
            f"{path} is not a notebook ({error}): delete it and run 'traceonce author build'."
        ) from error
    if not isinstance(notebook, dict):
        raise TraceOnceError(f"{path} is not a notebook: delete it and run 'traceonce author build'.")
    return notebook


def stored_outputs(pair: Pair, stored: Json) -> list[list[Json]] | None:
    """The outputs in a stored notebook, if they are those of the source's code as it is now; else `None`."""
    if recorded(stored, "executed") != code_digest(pair.cells):
        return None
    code_cells = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    if [cell["source"] for cell in code_cells] != [cell.source for cell in pair.cells if cell.cell_type == "code"]:
        return None
    return [cell["outputs"] for cell in code_cells]


def edited_apart(pair: Pair, stored: Json) -> bool:
    """Whether the notebook holds an edit that its source has not: it differs from the source *and* from what was built."""
    now = text_digest([(cell["cell_type"], cell["source"]) for cell in stored["cells"]])
    source = text_digest([(cell.cell_type, cell.source) for cell in pair.cells])
    return now not in (source, recorded(stored, "sources"))


def recorded(stored: Json, key: str) -> str | None:
    """What the last build wrote into the notebook's metadata."""
    ours = stored.get("metadata", {}).get("traceonce", {})
    value = ours.get(key) if isinstance(ours, dict) else None
    return value if isinstance(value, str) else None


def write(path: Path, notebook: Json) -> bool:
    """Write a notebook unless it is there already, whole or not at all; returns whether the file changed."""
    text = dumps(notebook)
    if path.is_file() and path.read_text("utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, "utf-8")
    part.replace(path)
    return True
