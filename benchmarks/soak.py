"""A class of thousands in one batch: mixed submissions, two kills on the way, resumes, and the memory of every process of the grader.

    python benchmarks/soak.py [--submissions 2000] [--workers 2] [--lab lab01_pure_functions ...]

The class is made of the labs' proofs (the reference, other right answers, wrong ones, the untouched starter), of code that misbehaves in each
way that a limit is for, and of 5 % files that are no notebook of a lab. A lab that is named twice gets twice the share; by default three of four
submissions are of the cheapest lab. When a third is graded the supervisor is killed with `SIGKILL`, and when two thirds are the whole command; each time the same
command goes on. Exit code 1 where a record is missing, has another status than its submission must get, a kept record
was made again, a process is left, or a process of the grader grows with the number of submissions.
"""

import argparse
import itertools
import json
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
from traceonce.author.submissions import Answer, answers, as_notebook, is_solution, pick_labs
from traceonce.grade.lab import find_root

TIME_LIMIT, MEMORY_LIMIT = 60, 768
LABS = ["lab07_honest_timing"] * 3 + ["lab01_pure_functions"]
# What a process may gain over a whole run, however long: caches that fill once.
MOST_GROWTH_MB = 16
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


@dataclass
class _Proof:
    """A lab's answers as notebooks, and the endless row of them."""

    right: Answer
    texts: dict[str, str]
    honest: Iterator[Answer]

    @classmethod
    def of(cls, lab: str) -> "_Proof":
        (pair,) = pick_labs(Course(find_root()), lab)
        proof = list(answers(pair))
        texts = {answer.name: dumps(as_notebook(pair, answer)) for answer in proof}
        return cls(next(answer for answer in proof if answer.kind == "reference"), texts, itertools.cycle(proof))


def make_class(folder: Path, labs: list[str], count: int) -> dict[str, set[str]]:
    """Write the submissions; by name, the statuses that each may get."""
    proofs = {lab: _Proof.of(lab) for lab in labs}
    bad, broken = itertools.cycle(MISBEHAVIOUR.items()), itertools.cycle(NO_NOTEBOOK.items())
    expected = {}
    for number in range(count):
        name, lab = f"s{number:05}", labs[number % len(labs)]
        proof = proofs[lab]
        path = folder / f"{name}_{lab}.ipynb"
        if number % 20 == 7:
            path.write_text(next(broken)[1], "utf-8")
            expected[path.stem] = {"malformed", "missing"}
            continue
        misbehaves = number % 25 == 11
        answer = proof.right if misbehaves else next(proof.honest)
        document = json.loads(proof.texts[answer.name])
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
    killed: bool = False
    left: list[int] = field(default_factory=list)

    def growth(self, role: str) -> tuple[float, float, int]:
        """MB at the first quarter, at the end, and the submissions between."""
        points = self.samples[role]
        start = points[0][0] + (points[-1][0] - points[0][0]) // 4
        early = max(mb for done, mb in points if done <= start)
        late = max(mb for done, mb in points if done >= points[-1][0] - max(2, (points[-1][0] - start) // 10))
        return early, late, points[-1][0] - start


def roles(command: psutil.Process) -> Iterator[tuple[str, psutil.Process]]:
    """The grader's lasting processes: the command's descendants but for what is forked for one submission."""
    yield "command", command
    for child in command.children():
        yield "supervisor", child
        for helper in child.children():
            line = helper.cmdline()
            if "traceonce.grade.zygote" in line:
                yield "zygote", helper
                continue
            yield "judge", helper
            # One for each file of hidden asserts, in the order in which they were asked for.
            for number, file in enumerate(sorted(helper.children(), key=lambda one: one.pid), start=1):
                yield f"judge, file {number}", file


def watch(command: list[str], out: Path, stop_at: int | None = None, victim: str = "command") -> Watched:
    """Run the command to its end, or kill a process of it when `stop_at` records are there."""
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
                next(one for role, one in roles(me) if role == victim).kill()
                seen.killed = True
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
        if late - early > MOST_GROWTH_MB:
            wrong.append(f"{name}: the {role} grew by {late - early:.0f} MB over {between} submissions")
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--submissions", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--lab", action="append", help="A lab of the mix; three parts lab 07 and one part lab 01 by default."
    )
    options = parser.parse_args()
    if options.submissions < 20:
        parser.error("at least 20 submissions, so that there is one of each kind of file")
    with tempfile.TemporaryDirectory(prefix="traceonce-soak-") as name:
        place, out = Path(name, "class"), Path(name, "out")
        place.mkdir()
        expected = make_class(place, options.lab or LABS, options.submissions)
        limits = [
            "--time-limit",
            str(TIME_LIMIT),
            "--memory-limit",
            str(MEMORY_LIMIT),
            "--workers",
            str(options.workers),
        ]
        command = [sys.executable, "-m", "traceonce", "grade", str(place), "--out", str(out), *limits]
        wrong: list[str] = []
        kept: dict[str, int] = {}
        plan = (
            ("to the supervisor's kill", 1, "supervisor", 3),
            ("to the command's kill", 2, "command", -signal.SIGKILL),
        )
        for title, thirds, victim, code in (*plan, ("to the end", None, "", 0)):
            run = watch(command, out, thirds and options.submissions * thirds // 3, victim)
            wrong += report(title, run)
            if run.killed != bool(victim):
                wrong.append(f"{title}: it ended before it was killed, with exit code {run.returncode}")
            if run.returncode != code:
                wrong.append(f"{title}: exit code {run.returncode}, and must be {code}")
            if thirds:
                kept = {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/record.json")} | kept
        wrong += verdicts(out, expected, kept)
        statuses = Counter(json.loads(path.read_text("utf-8"))["status"] for path in out.glob("*/record.json"))
        print(f"{len(expected)} submissions, {len(kept)} kept over the kills: {dict(sorted(statuses.items()))}")
    for line in wrong:
        print(f"WRONG: {line}")
    print("ok" if not wrong else f"{len(wrong)} things are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
