"""Run on a GPU what can differ there, within a given time, and write down what was seen.

``make test-gpu`` calls this, and so does the script in the archive of ``traceonce bundle gpu``.

    python tests/gpu_run.py                     everything, on the GPU that JAX finds
    python tests/gpu_run.py --dry               the same on a CPU, to see that all of it works; the GPU's own facts are not shown
    python tests/gpu_run.py --minutes 8         what does not fit is named, and fails the run
    python tests/gpu_run.py --notebooks 05 08   these alone

Most important first: the tests marked `gpu`, a short check of the grader, the notebooks (with the outputs that are stored from a
CPU), the instruments' own tests. Cells tagged `needs-gpu` measure on a GPU; what they print is in the report, to be read.

Exit codes: 0 all of it ran and held, 1 something did not, 2 wrong usage, 3 there is no GPU.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import asdict, dataclass, field
from pathlib import Path

from traceonce.author.cell_log import CellRun, read_log
from traceonce.author.changes import difference, differing, nbval_command, pick_notebooks
from traceonce.author.course import Course, find_course
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.record import Record

ROOT = Path(__file__).resolve().parent.parent
PYTEST = [sys.executable, "-m", "pytest", "-q", "--tb=short", "--color=no", "-p", "no:cacheprovider"]
# The notebooks in which a GPU shows most come first; those that put JAX on the CPU themselves come last.
FIRST = ("08b", "08_", "07", "09", "10", "04", "05", "01", "02", "03", "06", "lab08", "lab09", "lab07", "lab10")
GRADED = "lab01_pure_functions"
_FACTS = """
import json, platform, jax, jaxlib
print("facts:" + json.dumps({
    "python": platform.python_version(), "jax": jax.__version__, "jaxlib": jaxlib.__version__, "machine": platform.platform(),
    "backend": jax.default_backend(), "devices": [device.device_kind for device in jax.devices()],
}))
"""


@dataclass
class Stage:
    """What one stage did. `seconds` it took; `passed`, `failed`, `skipped` tests or cells; `not_run`: what its time was too short for."""

    name: str
    seconds: float = 0.0
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether all of it ran and held."""
        return not self.failed and not self.not_run


@dataclass(frozen=True)
class NotebookResult:
    """The cells of one notebook, by what became of them."""

    notebook: str
    cells: int
    same: int
    differs: int
    raised: int
    measured: int
    not_compared: int
    not_run: int
    seconds: float


class Clock:
    """Seconds that are left of the time that was given; without a limit there are always some."""

    def __init__(self, minutes: float | None) -> None:
        self._end = None if minutes is None else time.monotonic() + 60 * minutes

    def left(self, keep: float = 0.0) -> float | None:
        """Seconds left, less those that are kept for what comes after."""
        return None if self._end is None else max(0.0, self._end - time.monotonic() - keep)


def run_within(
    command: list[str], seconds: float | None, log: Path, environment: dict[str, str]
) -> tuple[int | None, float]:
    """Run a command, its output into a file; the exit code (`None`: its time was over) and the seconds it took.

    A command whose time is over is interrupted, so that it can still write its report, and killed with all it started 20
    seconds later.
    """
    start = time.monotonic()
    if seconds is not None and seconds < 5:
        return None, 0.0
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
        code: int | None
        try:
            code = process.wait(seconds)
        except (subprocess.TimeoutExpired, KeyboardInterrupt) as reason:
            code = None
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            kill_session(process.pid)
            process.wait()
            if isinstance(reason, KeyboardInterrupt):
                raise
    return code, time.monotonic() - start


def kill_session(leader: int) -> None:
    """Kill the processes of a session that was started here; kernels make groups of their own in it."""
    import psutil

    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader:
                process.kill()
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue


def facts_of(environment: dict[str, str]) -> dict[str, object]:
    """Versions and devices as a child finds them, so that this process holds none. **Raises**: `TraceOnceError`."""
    try:
        ran = subprocess.run(
            [sys.executable, "-c", _FACTS], env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise TraceOnceError(
            "JAX did not start within 120 s: the driver hangs, or another process holds the GPU."
        ) from error
    for line in ran.stdout.splitlines():
        if line.startswith("facts:"):
            return dict(json.loads(line.removeprefix("facts:")))
    last = (ran.stderr.strip().splitlines() or ["it says nothing"])[-1]
    raise TraceOnceError(f"JAX does not start ({last}): run `traceonce doctor`.")


def count(report: Path, stage: Stage) -> None:
    """Take a JUnit file's results into a stage. A report that is missing or empty is a failure, unless time was short."""
    cases = ET.parse(report).getroot().findall(".//testcase") if report.exists() else []
    for case in cases:
        name = f"{case.get('classname')}::{case.get('name')}"
        skip = case.find("skipped")
        bad = case.find("failure") if case.find("failure") is not None else case.find("error")
        if skip is not None:
            stage.skipped.append(f"{name}: {skip.get('message')}")
        elif bad is not None:
            stage.failed += 1
            stage.failures.append(f"{name}\n{(bad.text or bad.get('message') or '').strip()}")
        else:
            stage.passed += 1
    if not cases and not stage.not_run:
        stage.failed += 1
        stage.failures.append("no test was collected")


def tests_stage(
    name: str, arguments: list[str], out: Path, seconds: float | None, environment: dict[str, str]
) -> Stage:
    """A stage of ordinary tests."""
    stage = Stage(name)
    report = out / f"{name}.xml"
    command = [*PYTEST, *arguments, f"--junitxml={report}"]
    code, stage.seconds = run_within(command, seconds, out / f"{name}.log", environment)
    if code is None:
        stage.not_run.append(f"{name}: the time was over after {stage.seconds:.0f} s")
    count(report, stage)
    if code not in (0, None) and not stage.failed:
        stage.failed += 1
        stage.failures.append(f"pytest ended with exit code {code}: read {name}.log")
    return stage


def in_order(course: Course, names: list[str]) -> list[str]:
    """The notebooks, the most telling first."""

    def place(path: str) -> int:
        stem = Path(path).stem
        return next((number for number, start in enumerate(FIRST) if stem.startswith(start)), len(FIRST))

    return sorted(pick_notebooks(course, names), key=place)


def notebooks_stage(
    course: Course,
    names: list[str],
    out: Path,
    seconds: float | None,
    environment: dict[str, str],
    on_gpu: bool,
    workers: int,
) -> tuple[Stage, list[NotebookResult], tuple[CellRun, ...]]:
    """nbval over the notebooks: each cell compared with what is stored from a CPU."""
    stage = Stage("notebooks")
    notebooks = in_order(course, names)
    log = out / "cells.jsonl"
    # xdist would take the longest notebooks first; here the order is the point.
    command = [*nbval_command(notebooks, log, workers=workers), "--no-loadscope-reorder"]
    code, stage.seconds = run_within(
        [*command, "--on-gpu"] if on_gpu else command, seconds, out / "notebooks.log", environment
    )
    runs = read_log(log)
    write_junit(out / "notebooks.xml", runs)
    results = [result_of(course.root, notebook, runs) for notebook in notebooks]
    for result in results:
        if result.not_run and code is None:
            stage.not_run.append(f"{result.notebook}: {result.not_run} of {result.cells} cells")
        elif result.not_run:
            stage.failed += result.not_run
            stage.failures.append(f"{result.notebook}: {result.not_run} cells did not run: read notebooks.log")
    stage.passed = sum(run.verdict in ("same", "measured", "not compared") for run in runs)
    stage.failed += len(differing(runs))
    return stage, results, runs


def write_junit(path: Path, runs: tuple[CellRun, ...]) -> None:
    """The cells as a JUnit file. pytest's own would be lost with a run that is cut."""
    suite = ET.Element("testsuite", name="notebooks", tests=str(len(runs)), failures=str(len(differing(runs))))
    for run in runs:
        case = ET.SubElement(suite, "testcase", classname=run.notebook, name=f"cell {run.cell}", time=str(run.seconds))
        if run in differing(runs):
            ET.SubElement(case, "failure", message=run.verdict).text = "\n".join(difference(run))
    ET.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)


def result_of(root: Path, notebook: str, runs: tuple[CellRun, ...]) -> NotebookResult:
    """What became of the cells of one notebook."""
    stored = json.loads((root / notebook).read_text("utf-8"))
    cells = sum(cell["cell_type"] == "code" for cell in stored["cells"])
    mine = [run for run in runs if run.notebook == notebook]
    by = {
        verdict: sum(run.verdict == verdict for run in mine)
        for verdict in ("same", "differs", "raised", "measured", "not compared")
    }
    return NotebookResult(
        notebook,
        cells,
        by["same"],
        by["differs"],
        by["raised"],
        by["measured"],
        by["not compared"],
        cells - len(mine),
        round(sum(run.seconds for run in mine), 1),
    )


def grader_stage(out: Path, seconds: float | None, environment: dict[str, str]) -> Stage:
    """One lab graded as a class is: its solution gets all points and its starter none, in whatever isolation is allowed here."""
    stage = Stage("grader")
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="traceonce-gpu-") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        shutil.copy(ROOT / "solutions" / f"{GRADED}.ipynb", work / "solution.ipynb")
        shutil.copy(ROOT / "labs" / f"{GRADED}.ipynb", work / "starter.ipynb")
        for isolation in ("namespaces", "landlock"):
            grades = Path(folder) / isolation
            command = [sys.executable, "-m", "traceonce", "grade", str(work), "--lab", GRADED, "--out", str(grades)]
            command += ["--isolation", isolation, "--format", "summary"]
            code, _ = run_within(command, seconds, out / "grader.log", environment)
            if code != 3:
                break
        found = [Record.from_json(path.read_text("utf-8")) for path in sorted(grades.rglob("*.json"))]
    records = {Path(record.file).stem: record for record in found if record is not None}
    stage.seconds = time.monotonic() - start
    if code is None:
        stage.not_run.append("the grader: its time was over")
        return stage
    for name in ("solution", "starter"):
        record = records.get(name)
        right = record is not None and record.max_score > 0 and not record.defect
        right = right and record.score == (record.max_score if name == "solution" else 0)
        stage.passed += right
        if not right:
            stage.failed += 1
            got = f"{record.score:g} of {record.max_score:g} points" if record else "no record"
            stage.failures.append(f"the {name} of {GRADED} has {got} (exit code {code}): read grader.log")
    return stage


def environment_for(on_gpu: bool, workers: int, folder: Path) -> dict[str, str]:
    """The variables of what runs here: a share of the GPU for each process, and no record of the caller's own progress."""
    environment = os.environ | {"TRACEONCE_PROGRESS": str(folder / "progress.json")}
    if on_gpu:
        # Several kernels share the GPU, and their children want some of it too: JAX's own 75 % would leave room for one.
        environment.pop("XLA_PYTHON_CLIENT_MEM_FRACTION", None)
        environment["XLA_CLIENT_MEM_FRACTION"] = f"{0.6 / workers:.2f}"
    else:
        environment["JAX_PLATFORMS"] = "cpu"
        environment["TRACEONCE_GPU_DRY"] = "1"
    return environment


def write_report(
    out: Path, facts: dict, stages: list[Stage], results: list[NotebookResult], runs: tuple[CellRun, ...]
) -> str:
    """Write result.json, report.txt and differences.diff; returns the text of the report."""
    lines = [f"Trace Once on {', '.join(dict.fromkeys(map(str, facts['devices'])))} ({facts['backend']})"]
    lines += [f"Python {facts['python']}, JAX {facts['jax']}, jaxlib {facts['jaxlib']}, {facts['machine']}", ""]
    for stage in stages:
        state = "ok    " if stage.ok else "FAILED" if stage.failed else "cut   "
        lines.append(
            f"{state}  {stage.name:<12} {stage.seconds:6.1f} s   {stage.passed} passed, {stage.failed} failed, {len(stage.skipped)} skipped"
        )
    lines += ["", "notebooks: cells, same, differ, raised, measured, not compared, not run, seconds"]
    for result in results:
        figures = [
            result.cells,
            result.same,
            result.differs,
            result.raised,
            result.measured,
            result.not_compared,
            result.not_run,
        ]
        lines.append(
            f"  {result.notebook:<55}" + "".join(f"{figure:>5}" for figure in figures) + f"{result.seconds:>8.1f}"
        )
    measured = [run for run in runs if run.verdict == "measured"]
    if measured:
        lines += ["", "what the needs-gpu cells measured, to be read:"]
        lines += [
            f"  {run.notebook} cell {run.cell}: {' '.join(''.join(run.now.values()).split())}" for run in measured
        ]
    for title, texts in (
        ("not run", [text for stage in stages for text in stage.not_run]),
        ("skipped", [text for stage in stages for text in stage.skipped]),
        ("failed", [text for stage in stages for text in stage.failures]),
    ):
        if texts:
            lines += ["", f"{title}:", *(f"  {text}".replace("\n", "\n    ") for text in texts)]
    if found := differing(runs):
        lines += ["", f"{len(found)} cells differ, the differences are in differences.diff:"]
        lines += [f"  {run.notebook} cell {run.cell}: {run.code}" for run in found]
    diff = "\n".join(line for run in differing(runs) for line in difference(run))
    (out / "differences.diff").write_text(f"{diff}\n" if diff else "", "utf-8")
    whole = {
        "facts": facts,
        "ok": all(stage.ok for stage in stages),
        "stages": [asdict(stage) | {"ok": stage.ok} for stage in stages],
        "notebooks": [asdict(result) for result in results],
        "cells": [asdict(run) for run in runs if run.verdict in ("differs", "raised", "measured")],
    }
    (out / "result.json").write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", "utf-8")
    text = "\n".join(lines) + "\n"
    (out / "report.txt").write_text(text, "utf-8")
    return text


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dry", action="store_true", help="run on a CPU, to see that all of it works")
    parser.add_argument("--minutes", type=float, help="how long all of it may take; without, as long as it takes")
    parser.add_argument(
        "--notebooks", nargs="*", default=[], metavar="NAME", help="these notebooks alone, such as 05 or lab08"
    )
    parser.add_argument("--out", type=Path, help="folder for the results; a new one for each run by default")
    parser.add_argument(
        "--workers", type=int, help="notebooks that run side by side; 2, or 4 on a machine with 8 cores or more"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    asked = parse(arguments)
    clock = Clock(asked.minutes)
    workers = asked.workers or (4 if (os.cpu_count() or 1) >= 8 else 2)
    with tempfile.TemporaryDirectory(prefix="traceonce-gpu-") as folder:
        environment = environment_for(not asked.dry, workers, Path(folder))
        facts = facts_of(environment)
        on_gpu = facts["backend"] == "gpu"
        if not on_gpu and not asked.dry:
            print(
                f"No GPU: JAX {facts['jax']} runs on {facts['backend']} here. Run this where JAX finds one (`traceonce doctor` says why "
                "it does not), or `make test-gpu DRY=1` to see on a CPU that all of it works.",
                file=sys.stderr,
            )
            return 3
        out = asked.out or Path(tempfile.mkdtemp(prefix="traceonce-gpu-results-"))
        out.mkdir(parents=True, exist_ok=True)
        out = out.resolve()
        course = find_course(ROOT)
        with (out / "doctor.json").open("w", encoding="utf-8") as file:
            subprocess.run(
                [sys.executable, "-m", "traceonce", "doctor", "--json"],
                cwd=ROOT,
                env=environment,
                stdout=file,
                check=False,
            )
        stages = [
            tests_stage("gpu-tests", ["tests/gpu", "-m", "gpu"], out, clock.left(), environment),
            grader_stage(out, clock.left(), environment),
        ]
        told, results, runs = notebooks_stage(
            course, asked.notebooks, out, clock.left(keep=25), environment, on_gpu and not asked.dry, workers
        )
        stages.append(told)
        if not asked.notebooks:
            own = ["tests/observe", "-m", "not browser and not gpu", "-n", str(workers), "--dist", "loadfile"]
            stages.append(tests_stage("instruments", own, out, clock.left(keep=20), environment))
        print(write_report(out, facts, stages, results, runs))
        print(f"All of it is in {out}.")
        return 0 if all(stage.ok for stage in stages) else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except TraceOnceError as error:
        print(f"test-gpu: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 3)
