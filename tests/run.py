"""Run every check of the project, one stage after the other, and say what did not run.

``make test`` calls this. Every stage runs even where an earlier one failed, so that one run shows everything that is wrong.
The last lines list each test that was skipped, with its reason; with ``CI`` set in the environment a skipped test fails the run,
because nobody reads a skip in a green log.

    python tests/run.py                 all stages
    python tests/run.py lint unit       some of them
"""

import contextlib
import os
import secrets
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
# The tools of the site have an environment of their own, with no JAX in it.
SITE_PYTHON = ROOT / ".venv-site" / "bin" / "python"
# A file of tests stays in one worker, because its fixtures are dear.
WORKERS = ["-q", "--tb=short", "-n", "2", "--dist", "loadfile"]
# nbval runs a fresh kernel for each notebook; loadscope keeps the cells of one notebook in one worker.
NBVAL = [
    "--nbval",
    "--tb=short",
    "--nbval-cell-timeout=60",
    "--nbval-kernel-startup-timeout=120",
    "-p",
    "no:cacheprovider",
    "-n",
    "2",
    "--dist",
    "loadscope",
]


@dataclass(frozen=True)
class Stage:
    """Commands that check one thing.

    **Arguments**

    - `pytest`: also report how many tests passed and which were skipped.
    - `needs`: an environment that it runs in, made first where it is missing or old.
    - `beside`: it leaves a core idle (one process, or a browser to wait for), so that it runs beside the stage before it. Its
      output is shown when both are done.
    """

    name: str
    commands: tuple[tuple[str, ...], ...]
    pytest: bool = False
    needs: str = ""
    beside: bool = False


@dataclass
class Outcome:
    """What a stage did: seconds it took, tests by result, and a reason for each skipped test."""

    name: str
    ok: bool = True
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)


def _python(*arguments: str) -> tuple[str, ...]:
    return (PYTHON, "-m", *arguments)


STAGES = (
    Stage("lint", (_python("ruff", "format", "--check", "."), _python("ruff", "check", "."))),
    Stage("types", (_python("mypy"),)),
    Stage(
        "built",
        (_python("traceonce", "author", "build", "--check"), _python("traceonce", "author", "claims", "--check")),
        beside=True,
    ),
    Stage(
        "unit",
        (_python("pytest", "tests", "-m", "not browser and not gpu", "--ignore=tests/site", *WORKERS),),
        pytest=True,
    ),
    Stage("notebooks", (_python("pytest", *NBVAL, "course", "solutions"),), pytest=True),
    # Other seeds at each run; they stand in the command that is shown.
    Stage("graders", (_python("traceonce", "author", "graders", f"--first-seed={secrets.randbelow(10**6)}"),)),
    Stage(
        "browser",
        (_python("pytest", "tests", "-m", "browser", "--ignore=tests/site", "-q", "--tb=short"),),
        pytest=True,
        beside=True,
    ),
    # The site and the slides are built once, then looked at.
    Stage(
        "site",
        ((str(SITE_PYTHON), "-m", "pytest", "tests/site", "-q", "--tb=short"),),
        pytest=True,
        needs="site",
        beside=True,
    ),
)


def count(report: Path, outcome: Outcome) -> None:
    """Add the results in a JUnit file to an outcome; a missing or empty report is a failure."""
    if not report.exists():
        outcome.ok = False
        return
    cases = ET.parse(report).getroot().findall(".//testcase")
    if not cases:
        print(f"{outcome.name}: no test was collected")
        outcome.ok = False
    for case in cases:
        skip = case.find("skipped")
        if skip is not None:
            outcome.skipped.append(f"{case.get('classname')}::{case.get('name')}: {skip.get('message')}")
        elif case.find("failure") is not None or case.find("error") is not None:
            outcome.failed += 1
        else:
            outcome.passed += 1


def run(stage: Stage, folder: Path, output: IO[str] | None = None) -> Outcome:
    """Run a stage's commands, their output shown or written to a file; a command that exits non-zero fails the stage."""
    outcome = Outcome(stage.name)
    start = time.monotonic()
    # Answers that somebody recorded at their desk must not reach the stored outputs.
    environment = os.environ | {"TRACEONCE_PROGRESS": str(folder / f"{stage.name}-progress.json")}
    made = ["sh", str(ROOT / "requirements" / "make_env.sh"), stage.needs]
    if stage.needs and subprocess.run(made, stdout=output, stderr=subprocess.STDOUT, check=False).returncode != 0:
        outcome.ok, outcome.failed = False, 1
        return outcome
    for number, command in enumerate(stage.commands):
        report = folder / f"{stage.name}-{number}.xml"
        whole = (*command, f"--junitxml={report}") if stage.pytest else command
        print(f"\n== {stage.name}: {' '.join(command[1:])}", file=output, flush=True)
        errors = subprocess.STDOUT if output else None
        if subprocess.run(whole, cwd=ROOT, env=environment, stdout=output, stderr=errors, check=False).returncode != 0:
            outcome.ok = False
        if stage.pytest:
            count(report, outcome)
    if not stage.pytest:
        outcome.passed, outcome.failed = (1, 0) if outcome.ok else (0, 1)
    elif not outcome.ok:
        outcome.failed = max(outcome.failed, 1)
    outcome.seconds = time.monotonic() - start
    return outcome


def run_group(group: list[Stage], folder: Path) -> list[Outcome]:
    """Run a stage, and beside it those that leave it room."""
    with ThreadPoolExecutor() as pool, contextlib.ExitStack() as files:
        beside = []
        for stage in group[1:]:
            output = files.enter_context((folder / f"{stage.name}.log").open("w+"))
            beside.append((output, pool.submit(run, stage, folder, output)))
        outcomes = [run(group[0], folder)]
        for output, future in beside:
            outcomes.append(future.result())
            output.seek(0)
            print(output.read(), flush=True)
    return outcomes


def groups(stages: list[Stage]) -> list[list[Stage]]:
    """The stages in order, some beside the one before them."""
    grouped: list[list[Stage]] = []
    for stage in stages:
        if stage.beside and grouped:
            grouped[-1].append(stage)
        else:
            grouped.append([stage])
    return grouped


def main(names: list[str]) -> int:
    known = [stage.name for stage in STAGES]
    if unknown := [name for name in names if name not in known]:
        print(f"No such stage: {', '.join(unknown)}. Choose from: {', '.join(known)}.", file=sys.stderr)
        return 2
    stages = [stage for stage in STAGES if not names or stage.name in names]
    with tempfile.TemporaryDirectory(prefix="traceonce-test-") as folder:
        outcomes = [outcome for group in groups(stages) for outcome in run_group(group, Path(folder))]

    print("\n== summary")
    for outcome in outcomes:
        print(f"{'ok    ' if outcome.ok else 'FAILED'}  {outcome.name:<10} {outcome.seconds:6.1f} s")
    skipped = [line for outcome in outcomes for line in outcome.skipped]
    for line in skipped:
        print(f"not run: {line}")
    print(
        f"{sum(o.passed for o in outcomes)} passed, {sum(o.failed for o in outcomes)} failed, {len(skipped)} skipped",
        flush=True,
    )
    if skipped and os.environ.get("CI"):
        print("In CI every test must run: install what the lines above name.", file=sys.stderr)
        return 1
    return 0 if all(outcome.ok for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
