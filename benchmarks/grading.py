"""What grading a submission costs, beside `nbgrader autograde` and `otter run` on the same lab in the same run.

    python benchmarks/grading.py [--lab lab01_pure_functions] [--submissions 10] [--rounds 3] [--otter PYTHON]

Processor time is that of all processes that a run started and waited for. What a run costs before the first submission
(starting Python, importing JAX, pytest and nbgrader) is left out on both sides: one submission is graded first, then one and
N more, and the difference is divided by N. The tools take turns, round by round, because a processor's clock wanders: figures are medians of the
rounds, a ratio is the median of the ratios within a round. `otter run` grades one notebook a start, so that there nothing can be left out. The others run the visible
asserts alone, Trace Once the hidden ones.

`--otter` names the Python of an environment with otter-grader and what the lab imports. It is not one of this project's: otter-grader asks for other versions than
the course is locked to. Make one with `python -m venv X && X/bin/pip install otter-grader ipykernel jax==0.11.2 equinox optax`.
"""

import argparse
import contextlib
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import nbformat

import traceonce
from traceonce.grade import Work, grade_submissions
from traceonce.grade.lab import find_root, load_lab, read_submission


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time and of wall time."""

    processor: float
    wall: float

    def per_submission(self, more: "Cost", count: int) -> "Cost":
        """What each of `count` further submissions cost."""
        return Cost((more.processor - self.processor) / count, (more.wall - self.wall) / count)


def measure(action: Callable[[], None]) -> Cost:
    """Run an action, and count what its child processes used."""
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    action()
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(used, ended - started)


def ours(notebook: Path, name: str, count: int, workers: int = 1) -> Cost:
    """Grade `count` copies of a notebook with Trace Once."""
    lab = load_lab(name)
    read = read_submission(notebook, lab)

    def grade() -> None:
        works = (Work(f"student{number}", "student", read, lab) for number in range(count))
        records = list(grade_submissions(works, seed=b"a benchmark has no secret to keep", workers=workers))
        wrong = [record for record in records if record.status != "passed"]
        assert len(records) == count
        assert not wrong, wrong[0]

    return measure(grade)


class Nbgrader:
    """A course of nbgrader's with one assignment."""

    def __init__(self, folder: Path, notebook: Path, name: str) -> None:
        self.folder, self.notebook, self.name = folder, notebook, name
        source = folder / "source" / name
        source.mkdir(parents=True)
        (source / f"{name}.ipynb").write_text(notebook.read_text())
        (folder / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'bench'\n")
        self._run("generate_assignment", name)

    def _run(self, *arguments: str) -> None:
        # nbgrader calls `alembic`, and starts kernels, by name.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        command = [sys.executable, "-m", "nbgrader", *arguments]
        done = subprocess.run(
            command, cwd=self.folder, env=os.environ | {"PATH": path}, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise SystemExit(f"nbgrader {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")

    def autograde(self, count: int) -> Cost:
        """Grade `count` copies of the notebook, anew."""
        shutil.rmtree(self.folder / "submitted", ignore_errors=True)  # those of another round would be graded again
        for number in range(count):
            place = self.folder / "submitted" / f"student{number}" / self.name
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{self.name}.ipynb").write_text(self.notebook.read_text())
        return measure(lambda: self._run("autograde", self.name, "--force", "--create"))


class Otter:
    """An autograder archive of otter's, with the lab's visible asserts as its tests."""

    def __init__(self, folder: Path, python: str, name: str) -> None:
        self.folder, self.python = folder, python
        lab = load_lab(name)
        tests = folder / "tests"
        tests.mkdir(parents=True)
        for cell in lab.cells:
            if cell.kind == "test":
                (tests / f"{cell.grade_id}.py").write_text(_OTTER_TEST.format(name=cell.grade_id, source=cell.source))
        self._run("generate", "-t", "tests", "-o", "autograder.zip", "--no-environment")
        cells = [nbformat.v4.new_code_cell(cell.source) for cell in lab.code]
        kernel = {"kernelspec": {"name": "python3", "language": "python", "display_name": "Python 3"}}
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=kernel), folder / "submission.ipynb")

    def _run(self, *arguments: str) -> None:
        command = [self.python, "-m", "otter", *arguments]
        source = str(Path(traceonce.__file__).resolve().parents[1])
        environment = os.environ | {
            "PATH": f"{Path(self.python).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
            "PYTHONPATH": source,
        }
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"otter {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")

    def run(self, count: int) -> Cost:
        """Grade the notebook `count` times, each time as a teacher would: in a process of its own. It has to get full marks."""

        def run() -> None:
            for _ in range(count):
                self._run("run", "-a", "autograder.zip", "submission.ipynb")

        cost = measure(run)
        found = json.loads((self.folder / "results.json").read_text())["tests"]
        wrong = [test for test in found if test.get("score", 0) != test.get("max_score", 0)]
        if wrong or not any(test.get("max_score") for test in found):
            raise SystemExit(f"otter does not give the reference full marks: {found}")
        return Cost(cost.processor / count, cost.wall / count)


_OTTER_TEST = """
from otter.test_files import test_case

OK_FORMAT = False
name = {name!r}
points = 1


@test_case(points=1)
def test_visible(env):
    exec({source!r}, env)
"""


@dataclass
class Tool:
    """One way to grade, and what it cost in each round."""

    name: str
    round: Callable[[int], tuple[Cost, Cost]]
    first: list[Cost] = field(default_factory=list)
    each: list[Cost] = field(default_factory=list)

    def take_turn(self, count: int) -> None:
        """Measure one round."""
        first, each = self.round(count)
        self.first.append(first)
        self.each.append(each)

    def processor(self) -> float:
        """The median of what a submission cost, in seconds of processor time."""
        return statistics.median(cost.processor for cost in self.each)

    def wall(self) -> float:
        """The same in seconds of wall time."""
        return statistics.median(cost.wall for cost in self.each)

    def start(self) -> float:
        """Seconds of wall time until the first submission was graded."""
        return statistics.median(cost.wall for cost in self.first)

    def ratios_to(self, other: "Tool") -> list[float]:
        """Processor time as a part of the other's, round by round."""
        return [mine.processor / theirs.processor for mine, theirs in zip(self.each, other.each, strict=True)]


def beyond_the_first(grade: Callable[[int], Cost]) -> Callable[[int], tuple[Cost, Cost]]:
    """A round of a tool that starts once for a whole batch."""

    def measured(count: int) -> tuple[Cost, Cost]:
        first = grade(1)
        return first, first.per_submission(grade(1 + count), count)

    return measured


def one_by_one(grade: Callable[[int], Cost]) -> Callable[[int], tuple[Cost, Cost]]:
    """A round of a tool that starts anew for each submission; `grade` gives what one of them costs."""

    def measured(count: int) -> tuple[Cost, Cost]:
        each = grade(count)
        return each, each

    return measured


def main() -> None:
    """Measure all and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lab", default="lab01_pure_functions")
    parser.add_argument(
        "--submissions", type=int, default=10, metavar="N", help="How many a round grades after the first."
    )
    parser.add_argument("--rounds", type=int, default=3, metavar="R")
    parser.add_argument("--otter", metavar="PYTHON", help="The Python of an environment with otter-grader.")
    parser.add_argument("--json", action="store_true", help="Print numbers for a program to read.")
    options = parser.parse_args()
    notebook = find_root() / "solutions" / f"{options.lab}.ipynb"
    with tempfile.TemporaryDirectory(prefix="traceonce-bench-") as folder, contextlib.chdir(folder):
        ours(notebook, options.lab, 1)  # fills the folder of compiled programs, where it is empty
        own = Tool("traceonce grade", beyond_the_first(lambda count: ours(notebook, options.lab, count)))
        two = Tool("  with two workers", beyond_the_first(lambda count: ours(notebook, options.lab, count, workers=2)))
        nbgrader = Nbgrader(Path(folder), notebook, options.lab)
        others = [Tool("nbgrader autograde", beyond_the_first(nbgrader.autograde))]
        if options.otter:
            otter = Otter(Path(folder) / "otter", options.otter, options.lab)
            otter.run(1)
            others.append(Tool("otter run", one_by_one(otter.run)))
        tools = (own, two, *others)
        for _ in range(options.rounds):
            for tool in tools:
                tool.take_turn(options.submissions)
    ratios = {other.name: own.ratios_to(other) for other in others}
    if options.json:
        costs = {tool.name.strip(): [asdict(cost) for cost in tool.each] for tool in tools}
        print(json.dumps(costs | {"ratios": ratios}))
        return
    print(f"{options.lab}, {options.rounds} rounds of {options.submissions} submissions, {os.cpu_count()} processors")
    print(f"{'':24}{'CPU s each':>12}{'wall s each':>13}{'wall s to the first':>22}")
    for tool in tools:
        print(f"{tool.name:24}{tool.processor():12.2f}{tool.wall():13.2f}{tool.start():22.1f}")
    for name, found in ratios.items():
        print(
            f"one submission costs {statistics.median(found):.3f} of what it costs with {name} "
            f"({min(found):.3f} to {max(found):.3f})"
        )
    if not options.otter:
        print("otter run was left out: name the Python of an environment that has otter-grader with --otter")


if __name__ == "__main__":
    main()
