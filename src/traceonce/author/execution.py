"""Run a notebook in a fresh kernel, as a reader would from the top, and take its outputs."""

import os
import tempfile
from pathlib import Path

from traceonce.author.course import Pair
from traceonce.author.notebooks import Json, assemble
from traceonce.errors import TraceOnceError

SECONDS_A_CELL = 60


class NotebookFailed(TraceOnceError):
    """A cell raised, took too long, or took the kernel with it."""

    def __init__(self, message: str) -> None:
        super().__init__(message, exit_code=1)


def execute(pair: Pair, *, seconds: float = SECONDS_A_CELL) -> list[list[Json]]:
    """The outputs of each code cell of a pair's source, from a fresh kernel in the notebook's folder.

    **Raises**: `NotebookFailed` with the cell's line in the source and the exception's last line.
    """
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

    notebook = nbformat.from_dict(assemble(pair, None))  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory(prefix="traceonce-author-") as folder:
        client = NotebookClient(
            notebook,
            timeout=int(seconds),
            kernel_name="python3",
            record_timing=False,
            store_widget_state=False,
            extra_arguments=["--log-level=ERROR"],  # or every kernel warns that its sockets are not encrypted
            resources={"metadata": {"path": str(pair.root / pair.source.parent)}},
        )
        # What the author answered at their desk must not show in the outputs.
        environment = os.environ | {"TRACEONCE_PROGRESS": str(Path(folder) / "progress.json")}
        try:
            client.execute(env=environment)
        except CellExecutionError as error:
            raise NotebookFailed(f"{_place(pair, client)}: {error.ename}: {_first_line(error.evalue)}") from error
        except CellTimeoutError as error:
            raise NotebookFailed(f"{_place(pair, client)}: the cell ran longer than {seconds:g} s.") from error
        except DeadKernelError as error:
            raise NotebookFailed(f"{_place(pair, client)}: the kernel died in this cell or before it.") from error
    return [[dict(output) for output in cell.outputs] for cell in notebook.cells if cell.cell_type == "code"]


def _place(pair: Pair, client: object) -> str:
    """The line of the code cell that ran last."""
    notebook = getattr(client, "nb")  # noqa: B009
    reached = pair.cells[0]
    for cell, ran in zip(pair.cells, notebook.cells, strict=True):
        if cell.cell_type == "code" and (ran.execution_count is not None or ran.outputs):
            reached = cell
    return pair.at(reached)


def _first_line(text: str) -> str:
    return text.strip().splitlines()[0] if text.strip() else "(no message)"
