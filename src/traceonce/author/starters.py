"""``labs/`` from ``solutions/``: what nbgrader's ``generate_assignment`` does to a notebook, without its database."""

import copy
import logging
from typing import Any

from traceonce.author.course import Pair
from traceonce.author.notebooks import Json, assemble
from traceonce.errors import TraceOnceError


def make_starter(pair: Pair) -> Json:
    """The learner's notebook of a lab: solutions replaced by a stub, outputs gone, cells locked, checksums added.

    The steps are those of nbgrader 0.9's ``GenerateAssignment.preprocessors``, less the ones that write to a database
    or add a header, so that the result is what an nbgrader course would hand out.

    **Raises**: `TraceOnceError` where nbgrader refuses the lab.
    """
    import nbformat
    from nbgrader.preprocessors import (
        CheckCellMetadata,
        ClearHiddenTests,
        ClearOutput,
        ClearSolutions,
        ComputeChecksums,
        LockCells,
    )

    steps = (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ClearHiddenTests, ComputeChecksums)
    notebook: Any = nbformat.from_dict(copy.deepcopy(assemble(pair, None)))  # type: ignore[no-untyped-call]
    quiet = logging.getLogger("traceonce.author.nbgrader")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False  # the same text is in the exception
    try:
        for step in (*steps, CheckCellMetadata):
            notebook, _ = step(log=quiet).preprocess(notebook, {})
    except (RuntimeError, ValueError) as error:
        raise TraceOnceError(f"{pair.source}: nbgrader cannot make a lab of it: {error}", exit_code=1) from error
    starter: Json = _plain(notebook)
    return starter


def _plain(value: Any) -> Any:
    """nbformat's own dictionaries as plain ones."""
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value
