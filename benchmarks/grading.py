"""CPU seconds that a submission costs: `traceonce grade` beside `nbgrader autograde`, on the same notebooks, in one run.

    python benchmarks/grading.py [SUBMISSIONS] [--lab lab01_pure_functions]

Each tool grades one submission and then all of them; the difference, divided by the number of further submissions, is what one
more submission costs. CPU seconds are those of all processes that the tool started (`RUSAGE_CHILDREN`), so they do not depend on
how busy the machine is elsewhere, nor on how many processors work at a time. The notebooks are the lab's right and wrong
answers, repeated in turn. nbgrader runs the visible asserts only; the hidden ones are extra work for `traceonce grade`.
"""

import argparse
import itertools
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUDGET = 0.5
"""CPU seconds a submission after the first, on lab 01."""


def cpu_seconds(command: list[str], folder: Path) -> float:
    """CPU seconds, user and system, of a command and all that it waited for; a failing command ends the benchmark."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # nbgrader starts other programs of its environment by name.
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)} failed with {run.returncode}:\n{run.stdout[-2000:]}\n{run.stderr[-2000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def traceonce(notebooks: list[Path], folder: Path) -> float:
    """CPU seconds of `traceonce grade` on these notebooks."""
    submissions = folder / "submissions"
    submissions.mkdir(parents=True)
    for number, notebook in enumerate(notebooks):
        shutil.copy(notebook, submissions / f"{number:04}_{notebook.name}")
    lab = next(iter(notebooks)).parent.name
    command = [
        sys.executable,
        "-m",
        "traceonce",
        "grade",
        str(submissions),
        "--out",
        str(folder / "grades"),
        "--lab",
        lab,
    ]
    return cpu_seconds(command, ROOT)


def nbgrader(notebooks: list[Path], folder: Path) -> float:
    """CPU seconds of `nbgrader autograde` on these notebooks; making the assignment is not counted."""
    lab = next(iter(notebooks)).parent.name
    source = folder / "source" / lab
    source.mkdir(parents=True)
    shutil.copy(ROOT / "solutions" / f"{lab}.ipynb", source / f"{lab}.ipynb")
    cpu_seconds([sys.executable, "-m", "nbgrader", "generate_assignment", lab, "--create"], folder)
    for number, notebook in enumerate(notebooks):
        submitted = folder / "submitted" / f"student{number:04}" / lab
        submitted.mkdir(parents=True)
        shutil.copy(notebook, submitted / f"{lab}.ipynb")
    return cpu_seconds([sys.executable, "-m", "nbgrader", "autograde", lab], folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("submissions", type=int, nargs="?", default=10)
    parser.add_argument("--lab", default="lab01_pure_functions")
    options = parser.parse_args()
    if options.submissions < 2:
        parser.error("at least two submissions are needed: the first one carries the start-up")
    with tempfile.TemporaryDirectory(prefix="traceonce-bench-") as name:
        folder = Path(name)
        written = folder / "written"
        graders = [
            sys.executable,
            "-m",
            "traceonce",
            "author",
            "graders",
            "--lab",
            options.lab,
            "--write",
            str(written),
        ]
        cpu_seconds(graders, ROOT)
        answers = sorted(path for path in written.rglob("*.ipynb") if "starter" not in path.stem)
        # One folder named after the lab, whatever the layout that was written.
        shelf = folder / options.lab
        shelf.mkdir()
        answers = [Path(shutil.copy(path, shelf / path.name)) for path in answers]
        chosen = list(itertools.islice(itertools.cycle(answers), options.submissions))
        each = {}
        for tool in (traceonce, nbgrader):
            first = tool(chosen[:1], folder / f"{tool.__name__}-one")
            whole = tool(chosen, folder / f"{tool.__name__}-all")
            each[tool.__name__] = (whole - first) / (len(chosen) - 1)
            print(
                f"{tool.__name__:<10} first {first:6.2f} CPU s, each further one {each[tool.__name__]:.3f} CPU s",
                flush=True,
            )
        print(f"nbgrader / traceonce: {each['nbgrader'] / each['traceonce']:.1f}x, over {len(chosen)} submissions")
        within = each["traceonce"] <= BUDGET
        print(f"budget of {BUDGET} CPU s a submission: {'kept' if within else 'MISSED'}")
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
