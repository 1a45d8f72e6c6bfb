"""Which printed output changed: the course run on this environment's JAX, cell by cell, stored against new."""

import difflib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from traceonce.author.cell_log import CellRun, read_log
from traceonce.author.course import Course
from traceonce.author.execution import SECONDS_A_CELL
from traceonce.errors import TraceOnceError, UsageError

WORKERS = 2
_TEXT = ("stdout", "stderr", "text/plain", "error")


def nbval_command(notebooks: Sequence[str], log: Path, *, workers: int = WORKERS) -> list[str]:
    """The call of nbval: a fresh kernel of this environment for each notebook, its cells in one worker, each cell logged."""
    command = [sys.executable, "-m", "pytest", "--nbval", "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider"]
    command += [f"--nbval-cell-timeout={SECONDS_A_CELL}", "--nbval-kernel-startup-timeout=120"]
    command += ["-n", str(workers), "--dist", "loadscope"]
    return [*command, "-p", "traceonce.author.cell_log", f"--cell-log={log}", *notebooks]


def pick_notebooks(course: Course, names: Sequence[str]) -> list[str]:
    """Notebooks by number (`05`), name or path; all without names. **Raises**: `UsageError` for one that is not there."""
    every = [pair.notebook.as_posix() for pair in course.pairs]
    if not names:
        return every
    picked = []
    for name in names:
        found = [path for path in every if path == name or Path(path).stem == name or Path(path).stem.startswith(name)]
        if not found:
            raise UsageError(f"There is no notebook {name!r}: name one as 05, lab05 or {every[0]}.")
        picked += found
    return list(dict.fromkeys(picked))


def changed(course: Course, *, names: Sequence[str], summary: Path | None, as_json: bool) -> int:
    """Run notebooks with this environment and print each cell whose output is not the stored one. Returns 1 where there is one.

    **Arguments**

    - `names`: as `pick_notebooks` takes them.
    - `summary`: a file to append the same to, as Markdown: what a hosted CI shows on the page of a run.

    **Raises**: `TraceOnceError` where cells were not run, so that nothing can be said of them.
    """
    notebooks = pick_notebooks(course, names)
    with tempfile.TemporaryDirectory(prefix="traceonce-changed-") as folder:
        log = Path(folder) / "cells.jsonl"
        environment = os.environ | {"TRACEONCE_PROGRESS": str(Path(folder) / "progress.json")}
        ran = subprocess.run(
            nbval_command(notebooks, log), cwd=course.root, env=environment, capture_output=True, text=True, check=False
        )
        runs = read_log(log)
    if missing := sorted(set(notebooks) - {run.notebook for run in runs}):
        last = (ran.stdout + ran.stderr).strip().splitlines()[-1:]
        raise TraceOnceError(
            f"{', '.join(missing)} did not run: {' '.join(last)}. Run `pytest --nbval {missing[0]}` and read what it says."
        )
    if as_json:
        print(json.dumps([asdict(run) for run in differing(runs)], indent=2, ensure_ascii=False))
    else:
        print("\n".join([*as_text(runs), headline(runs, notebooks)]))
    if summary is not None:
        with summary.open("a", encoding="utf-8") as file:
            file.write("\n".join(as_markdown(runs, notebooks)) + "\n")
    return 1 if differing(runs) else 0


def differing(runs: Sequence[CellRun]) -> list[CellRun]:
    """The cells whose output is not the stored one, in the order of the course."""
    found = [run for run in runs if run.verdict in ("differs", "raised")]
    return sorted(found, key=lambda run: (run.notebook, run.cell))


def headline(runs: Sequence[CellRun], notebooks: Sequence[str]) -> str:
    """One sentence: how many cells changed, of how many, on what."""
    many = len(differing(runs))
    books = f"{len(notebooks)} notebook{'s' if len(notebooks) != 1 else ''}"
    tail = f"of {len(runs)} in {books}, on JAX {version('jax')} and jaxlib {version('jaxlib')}"
    return f"{many} cell{'s' if many != 1 else ''} changed {tail}." if many else f"No cell changed {tail}."


def difference(run: CellRun) -> list[str]:
    """A unified diff of a cell's text, stored against new. A picture is named, and its lines are shown where no text differs."""
    kinds = sorted(run.stored.keys() | run.now.keys(), key=lambda kind: (kind not in _TEXT, kind))
    text = [kind for kind in kinds if kind in _TEXT]
    lines: list[str] = []
    for kind in text or kinds:
        before, after = run.stored.get(kind, ""), run.now.get(kind, "")
        where = f"{run.notebook} cell {run.cell} {kind}"
        lines += difflib.unified_diff(
            before.splitlines(), after.splitlines(), f"{where} (stored)", f"{where} (now)", lineterm="", n=2
        )
    lines += [f"({kind} differs as well)" for kind in kinds if text and kind not in text]
    if not lines:
        lines = ["(nothing that it printed differs: it raised, or took too long)"]
    return lines


def as_text(runs: Sequence[CellRun]) -> list[str]:
    """Each changed cell with its first line of code and its difference."""
    lines: list[str] = []
    for run in differing(runs):
        what = "raised" if run.verdict == "raised" else "changed"
        lines += [
            f"{run.notebook}, code cell {run.cell}, {what}: {run.code}",
            *(f"    {x}" for x in difference(run)),
            "",
        ]
    return lines


def as_markdown(runs: Sequence[CellRun], notebooks: Sequence[str]) -> list[str]:
    """The same for a page: a sentence, a table of notebooks, and the differences in blocks that fold."""
    lines = ["## Printed output of the course", "", headline(runs, notebooks), ""]
    found = differing(runs)
    if found:
        lines += ["| notebook | cells changed |", "|---|---|"]
        for notebook in dict.fromkeys(run.notebook for run in found):
            lines.append(f"| `{notebook}` | {', '.join(str(run.cell) for run in found if run.notebook == notebook)} |")
        lines.append("")
    for run in found:
        title = f"<code>{_escaped(run.notebook)}</code>, code cell {run.cell}: <code>{_escaped(run.code)}</code>"
        block = [f"    {line}" for line in difference(run)]  # indented: a fence could end inside of the output
        lines += [f"<details><summary>{title}</summary>", "", *block, "", "</details>", ""]
    return lines


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
