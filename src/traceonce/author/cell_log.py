"""A pytest plugin beside nbval: one line of JSON for each notebook cell, with its stored output and the new one.

nbval says that a cell differs; this keeps what the cell printed, so that another command can show the difference, also of
a run that was ended half-way. ``pytest -p traceonce.author.cell_log --nbval --cell-log cells.jsonl course``

With ``--on-gpu`` the cells tagged ``needs-gpu`` are not compared: what they must do there is to measure, so one that prints
what is stored from a CPU fails.
"""

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

NEEDS_GPU = "needs-gpu"
"""The tag of a cell that measures on a GPU alone."""

_PROPERTY = "traceonce_cell"
_NOT_SHOWN = (
    "application/vnd.jupyter.widget-view+json",
    "image/png",
    "image/jpeg",
)  # nbval does not compare them either

type Verdict = Literal["same", "differs", "raised", "not compared", "measured"]


@dataclass(frozen=True)
class CellRun:
    """One code cell that ran.

    **Arguments**

    - `notebook`: its path, relative to where pytest ran; `cell`: its number among the code cells, from 0, as nbval counts.
    - `code`: the first line that is not a comment.
    - `verdict`: `not compared` for a cell tagged so, `measured` for a ``needs-gpu`` cell on a GPU.
    - `stored`, `now`: what differs between the two outputs, by kind (`stdout`, `text/plain`, `image/svg+xml`, `error` …); for
      a cell that measured, all of both.
    - `seconds`: how long it took.
    """

    notebook: str
    cell: int
    code: str
    verdict: Verdict
    stored: dict[str, str]
    now: dict[str, str]
    seconds: float


def read_log(path: Path) -> tuple[CellRun, ...]:
    """The cells in a log, in the order in which they ended. A last line that is cut off is left out; no file is no cell."""
    if not path.is_file():
        return ()
    lines = path.read_text("utf-8").splitlines(keepends=True)
    return tuple(CellRun(**json.loads(line)) for line in lines if line.endswith("\n"))


def by_kind(outputs: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The text of a cell's outputs, for each kind of output joined in order."""
    found: dict[str, list[str]] = {}
    for output in outputs:
        if output["output_type"] == "stream":
            found.setdefault(output["name"], []).append(_text(output["text"]))
        elif output["output_type"] == "error":
            found.setdefault("error", []).append(f"{output['ename']}: {output['evalue']}\n")
        else:
            for kind, value in output["data"].items():
                if kind not in _NOT_SHOWN:
                    found.setdefault(kind, []).append(_text(value).rstrip("\n") + "\n")
    return {kind: "".join(texts) for kind, texts in found.items()}


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "".join(value)
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def first_line(source: str) -> str:
    """The first line of code in a cell."""
    lines = [line.strip() for line in source.splitlines()]
    return next((line for line in lines if line and not line.startswith("#")), "")


# The plugin -----------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("cell log", "what notebook cells printed")
    group.addoption("--cell-log", metavar="FILE", help="append a line of JSON for each notebook cell that ran")
    group.addoption("--on-gpu", action="store_true", help="cells tagged needs-gpu measure, and are not compared")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--on-gpu"):
        for item in items:
            if _needs_gpu(item):
                item.options["check"] = False  # type: ignore[attr-defined]


def _needs_gpu(item: pytest.Item) -> bool:
    cell = getattr(item, "cell", None)
    return cell is not None and NEEDS_GPU in cell.metadata.get("tags", [])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    result = yield
    if item.config.getoption("--on-gpu") and _needs_gpu(item):
        outputs = by_kind(item.test_outputs or ())  # type: ignore[attr-defined]
        if outputs == by_kind(item.cell.outputs):  # type: ignore[attr-defined]
            pytest.fail(f"The cell is to measure on a GPU and printed what a CPU prints: {outputs}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    report = yield
    cell = getattr(item, "cell", None)
    if cell is not None and (call.when == "call" or (call.when == "setup" and report.failed)):
        run = _run_of(item, cell, report)
        report.user_properties.append((_PROPERTY, json.dumps(asdict(run))))
    return report


def _run_of(item: Any, cell: Any, report: pytest.TestReport) -> CellRun:
    stored, now = by_kind(cell.outputs), by_kind(item.test_outputs or ())
    if report.when == "setup":  # its kernel did not start
        now = {"error": (report.longreprtext.strip().splitlines() or ["no reason is given"])[-1] + "\n"}
    measured = item.config.getoption("--on-gpu") and _needs_gpu(item)
    verdict: Verdict
    if report.failed:
        raised = report.when == "setup" or ("error" in now and "error" not in stored)
        verdict = "raised" if raised else "differs"
    elif measured:
        verdict = "measured"
    else:
        verdict = "same" if item.options["check"] else "not compared"
    if measured:
        kinds = stored.keys() | now.keys()
    elif verdict in ("differs", "raised"):
        kinds = {kind for kind in stored.keys() | now.keys() if stored.get(kind) != now.get(kind)}
    else:
        kinds = set()
    return CellRun(
        notebook=Path(item.path).relative_to(item.config.rootpath).as_posix(),
        cell=item.cell_num,
        code=first_line(cell.source),
        verdict=verdict,
        stored={kind: stored[kind] for kind in sorted(kinds) if kind in stored},
        now={kind: now[kind] for kind in sorted(kinds) if kind in now},
        seconds=round(report.duration, 3),
    )


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    log = _LOG[0] if _LOG else None
    for name, value in report.user_properties:
        if name == _PROPERTY and report.when in ("setup", "call") and log is not None:
            with log.open("a", encoding="utf-8") as file:
                file.write(f"{value}\n")


_LOG: list[Path] = []


def pytest_configure(config: pytest.Config) -> None:
    # Under xdist the reports of all workers come to the process that started them, which alone writes.
    name = config.getoption("--cell-log")
    _LOG[:] = [Path(name).absolute()] if name and not hasattr(config, "workerinput") else []
