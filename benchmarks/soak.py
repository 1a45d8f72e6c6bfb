"""A class of thousands in one batch: mixed submissions, a kill in the middle, a resume, and the memory of every process of the grader.

    python benchmarks/soak.py [--submissions 2000] [--workers 2] [--lab lab01_pure_functions]

The class is made of the lab's proof (the reference, other right answers, wrong ones, the untouched starter), of code that misbehaves in each
way that a limit is for, and of 5 % files that are no notebook of the lab. When half is graded the whole command is killed with
`SIGKILL`; the same command then grades the rest. Exit code 1 where a record is missing, has another status than its submission must get, a kept record
was made again, a process is left, or a process of the grader grows with the number of submissions.
"""

import argparse
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from traceonce.author.course import Course
from traceonce.author.notebooks import dumps
from traceonce.author.submissions import answers, as_notebook, is_solution, pick_labs
from traceonce.grade.lab import find_root

TIME_LIMIT, MEMORY_LIMIT = 60, 768
# What grows with the class in the command itself: each submission's record, for the reports about all.
COMMAND_KB_A_SUBMISSION = 60
# What helpers may gain over a whole run: caches that fill once.
HELPER_MB = 24
_MB = 2**20

# Code put before a right answer in its first cell, and the status that comes of it. On a busy machine the clock can come before the memory.
MISBEHAVIOUR = {
    "raises": ("1 / 0", "error"),
    "exits": ("import os\nos._exit(7)", "crashed"),
    "segfaults": ("import ctypes\nctypes.string_at(0)", "crashed"),
    "endless": ("while True:\n    pass", "timeout"),
    "hungry": ("import numpy as np\nkept = []\nwhile True:\n    kept.append(np.ones(16_000_000))", "memory timeout"),
    "lingers": ("import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)", "passed"),
    "talks": ("print('x' * 5_000_000)", "passed"),
}
NO_NOTEBOOK = {
    "text": "this is no notebook",
    "empty": "",
    "no_cells": json.dumps({"cells": [], "metadata": {}, "nbformat": 4}),
    "nested": "[" * 50_000,
    "list": "[]",
    "other_lab": json.dumps({"cells": [], "metadata": {"traceonce": {"lab": "lab99_none"}}, "nbformat": 4}),
    "half": '{"cells": [{"cell_type": "code", "sou',
}


def make_class(folder: Path, lab: str, count: int) -> dict[str, set[str]]:
    """Write the submissions; by name, the statuses that each may get."""
    (pair,) = pick_labs(Course(find_root()), lab)
    proof = list(answers(pair))
    texts = {answer.name: dumps(as_notebook(pair, answer)) for answer in proof}
    right = next(answer for answer in proof if answer.kind == "reference")
    honest = itertools.cycle(proof)
    bad, broken = itertools.cycle(MISBEHAVIOUR.items()), itertools.cycle(NO_NOTEBOOK.items())
    expected = {}
    for number in range(count):
        name = f"s{number:05}"
        path = folder / f"{name}_{lab}.ipynb"
        if number % 20 == 7:
            path.write_text(next(broken)[1], "utf-8")
            expected[path.stem] = {"malformed", "missing"}
            continue
        misbehaves = number % 25 == 11
        answer = right if misbehaves else next(honest)
        document = json.loads(texts[answer.name])
        cells = [cell for cell in document["cells"] if is_solution(cell["metadata"])]
        cells[0]["source"] = "".join(cells[0]["source"])  # a notebook on disk has it in lines
        if misbehaves:
            code, status = next(bad)[1]
            cells[0]["source"] = f"{code}\n{cells[0]['source']}"
            expected[path.stem] = set(status.split())
        elif answer.kind in ("reference", "alternative"):
            expected[path.stem] = {"passed"}
        else:
            expected[path.stem] = {"failed", "error", "timeout"}
        cells[0]["source"] += f"\n# {name}"  # no two are alike, so that nothing is the same work
        path.write_text(dumps(document), "utf-8")
    return expected


@dataclass
class Watched:
    """One run of the command: memory in MB by process, each time with how many submissions were done."""

    samples: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    seconds: float = 0.0
    graded: int = 0
    returncode: int | None = None
    left: list[int] = field(default_factory=list)

    def growth(self, role: str) -> tuple[float, float, int]:
        """MB at the first quarter, at the end, and the submissions between."""
        points = self.samples[role]
        start = points[0][0] + (points[-1][0] - points[0][0]) // 4
        early = max(mb for done, mb in points if done <= start)
        late = max(mb for done, mb in points if done >= points[-1][0] - max(2, (points[-1][0] - start) // 10))
        return early, late, points[-1][0] - start


def roles(command: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """The grader's lasting processes; a fork of one is a submission's, and is left out."""
    yield "command", command
    for child in command.children():
        yield "supervisor", child
        for helper in child.children():
            line = helper.cmdline()
            yield ("zygote" if "traceonce.grade.zygote" in line else "judge"), helper


def watch(command: list[str], out: Path, stop_at: int | None) -> Watched:
    """Run the command to its end, or to a kill when `stop_at` records are there."""
    seen, started, before = Watched(), time.monotonic(), len(list(out.glob("*/record.json")))
    family: dict[int, psutil.Process] = {}
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        me = psutil.Process(process.pid)
        while process.poll() is None:
            done = len(list(out.glob("*/record.json")))
            try:
                family |= {child.pid: child for child in me.children(recursive=True)}
                for role, one in roles(me):
                    seen.samples.setdefault(role, []).append((done, one.memory_info().rss / _MB))
            except psutil.NoSuchProcess:
                pass  # it ended while it was looked at; the next look is at those that are there
            if stop_at is not None and done >= stop_at:
                os.kill(process.pid, signal.SIGKILL)
                break
            time.sleep(0.5)
        process.wait()
    _, alive = psutil.wait_procs(list(family.values()), timeout=30)
    seen.left = [one.pid for one in alive]
    seen.seconds, seen.returncode = time.monotonic() - started, process.returncode
    seen.graded = len(list(out.glob("*/record.json"))) - before
    return seen


def verdicts(out: Path, expected: dict[str, set[str]], kept: dict[str, int]) -> list[str]:
    """What is wrong with the records, a line each."""
    wrong = []
    for name, statuses in expected.items():
        path = out / name / "record.json"
        if not path.exists():
            wrong.append(f"{name} has no record")
            continue
        record = json.loads(path.read_text("utf-8"))
        if record["status"] not in statuses or record["defect"]:
            wrong.append(
                f"{name} is {record['status']} {record['defect']}, and must be {' or '.join(sorted(statuses))}"
            )
        if record["status"] != "passed" and not record["reasons"] and not record["asserts"]:
            wrong.append(f"{name} is {record['status']} without a reason")
    for name, written in kept.items():
        if (out / name / "record.json").stat().st_mtime_ns != written:
            wrong.append(f"{name} was graded before the kill and again after it")
    rows = (out / "grades.csv").read_text("utf-8").count("\n") - 1
    if rows != len(expected):
        wrong.append(f"grades.csv has {rows} rows")
    return wrong


def report(name: str, run: Watched) -> list[str]:
    """Print a run's figures; what grew too much, a line each."""
    print(f"{name}: {run.graded} graded in {run.seconds:.0f} s, one every {run.seconds / max(1, run.graded):.2f} s")
    wrong = [f"{name}: processes were left: {run.left}"] if run.left else []
    for role in run.samples:
        early, late, between = run.growth(role)
        a_submission = (late - early) * 1024 / max(1, between)
        print(
            f"  {role:<10} {early:7.1f} MB at a quarter, {late:7.1f} MB at the end: {a_submission:+6.1f} KB a submission"
        )
        allowed = COMMAND_KB_A_SUBMISSION * between / 1024 + HELPER_MB if role == "command" else HELPER_MB
        if late - early > allowed:
            wrong.append(f"{name}: the {role} grew by {late - early:.0f} MB over {between} submissions")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lab", default="lab01_pure_functions")
    options = parser.parse_args()
    if options.submissions < 20:
        parser.error("at least 20 submissions, so that there is one of each kind of file")
    with tempfile.TemporaryDirectory(prefix="traceonce-soak-") as name:
        place, out = Path(name, "class"), Path(name, "out")
        place.mkdir()
        expected = make_class(place, options.lab, options.submissions)
        limits = [
            "--time-limit",
            str(TIME_LIMIT),
            "--memory-limit",
            str(MEMORY_LIMIT),
            "--workers",
            str(options.workers),
        ]
        command = [sys.executable, "-m", "traceonce", "grade", str(place), "--out", str(out), *limits]
        first = watch(command, out, options.submissions // 2)
        kept = {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/record.json")}
        second = watch(command, out, None)
        wrong = [*report("until the kill", first), *report("resumed", second), *verdicts(out, expected, kept)]
        if second.returncode != 0:
            wrong.append(f"the resumed command ended with exit code {second.returncode}")
        statuses = Counter(json.loads(path.read_text("utf-8"))["status"] for path in out.glob("*/record.json"))
        print(f"{len(expected)} submissions, {len(kept)} kept over the kill: {dict(sorted(statuses.items()))}")
    for line in wrong:
        print(f"WRONG: {line}")
    print("ok" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
