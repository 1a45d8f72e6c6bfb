"""What changed: the log of cells that nbval ran, and the ways it is told."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import gpu_run
import nbformat
import psutil
import pytest

from traceonce.author.cell_log import CellRun, by_kind, read_log
from traceonce.author.changes import (
    as_markdown,
    as_text,
    difference,
    differing,
    headline,
    nbval_command,
    pick_notebooks,
)
from traceonce.author.course import find_course
from traceonce.errors import UsageError

CELLS = (  # source, what is stored of it, tags
    ("print(1 + 1)", "2\n", []),
    ("# a comment\nprint(2 * 3)", "5\n", []),
    ("raise ValueError('no such file')", "done\n", []),
    ("print('measured here')", "needs a GPU\n", ["needs-gpu"]),
    ("print('needs a GPU')", "needs a GPU\n", ["needs-gpu"]),
    ("import random; print(random.random())", "0.5\n", ["nbval-ignore-output"]),
)


def notebook(path):
    cells = []
    for number, (source, stored, tags) in enumerate(CELLS, start=1):
        cell = nbformat.v4.new_code_cell(source, execution_count=number, metadata={"tags": tags})
        cell.outputs = [nbformat.v4.new_output("stream", name="stdout", text=stored)]
        cells.append(cell)
    path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The same notebook logged as on a CPU and as on a GPU."""
    folder = tmp_path_factory.mktemp("changes")
    notebook(folder / "small.ipynb")
    (folder / "pytest.ini").write_text("[pytest]\n")
    logs = {}
    for where, more in (("cpu", []), ("gpu", ["--on-gpu"])):
        command = [*nbval_command(["small.ipynb"], folder / f"{where}.jsonl", workers=0), *more]
        done = subprocess.run(
            command, cwd=folder, env=os.environ, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode == 1, done.stdout + done.stderr
        logs[where] = read_log(folder / f"{where}.jsonl")
    return logs


def verdicts(runs):
    return [run.verdict for run in sorted(runs, key=lambda run: run.cell)]


def test_each_cell_is_logged_once_with_what_became_of_it(logged):
    assert verdicts(logged["cpu"]) == ["same", "differs", "raised", "differs", "same", "not compared"]


def test_on_a_gpu_a_cell_that_needs_one_must_measure(logged):
    assert verdicts(logged["gpu"]) == ["same", "differs", "raised", "measured", "differs", "not compared"]
    (measured,) = [run for run in logged["gpu"] if run.verdict == "measured"]
    assert (measured.stored, measured.now) == ({"stdout": "needs a GPU\n"}, {"stdout": "measured here\n"})


def test_what_changed_is_told_cell_by_cell(logged):
    told = "\n".join(as_text(logged["cpu"]))
    assert "small.ipynb, code cell 1, changed: print(2 * 3)" in told
    assert "-5\n" in told
    assert "+6\n" in told
    assert "small.ipynb, code cell 2, raised: raise ValueError('no such file')" in told
    assert "+ValueError: no such file" in told
    assert "random" not in told
    assert headline(logged["cpu"], ["small.ipynb"]).startswith("3 cells changed of 6 in 1 notebook, on JAX ")


def test_the_page_for_ci_holds_the_same_and_escapes_code():
    run = CellRun("a.ipynb", 4, "if a < b: print('```')", "differs", {"stdout": "1\n"}, {"stdout": "```\n<b>\n"}, 0.1)
    page = as_markdown([run], ["a.ipynb"])
    assert "| `a.ipynb` | 4 |" in page
    assert any("<code>if a &lt; b: print('```')</code>" in line for line in page)
    assert "    +<b>" in page  # indented, so that it is code
    assert not any(line.startswith("```") for line in page)


def test_a_picture_is_named_and_text_is_shown():
    stored, now = (
        {"text/plain": "3 compiles\n", "image/svg+xml": "<svg>3</svg>"},
        {"text/plain": "4 compiles\n", "image/svg+xml": "<svg>4</svg>"},
    )
    lines = difference(CellRun("a.ipynb", 0, "chart(seen)", "differs", stored, now, 0.1))
    assert "-3 compiles" in lines
    assert lines[-1] == "(image/svg+xml differs as well)"
    assert not any("<svg>" in line for line in lines)


def test_nothing_changed_is_one_sentence():
    runs = [CellRun("a.ipynb", 0, "1", "same", {}, {}, 0.1)]
    assert differing(runs) == []
    assert as_text(runs) == []
    assert headline(runs, ["a.ipynb"]).startswith("No cell changed of 1 in 1 notebook, on JAX ")


def test_a_line_that_was_cut_off_is_left_out(tmp_path):
    whole = {"notebook": "a.ipynb", "cell": 0, "code": "", "verdict": "same", "stored": {}, "now": {}, "seconds": 1.0}
    (tmp_path / "log").write_text(json.dumps(whole) + "\n" + json.dumps(whole)[:20])
    assert [run.cell for run in read_log(tmp_path / "log")] == [0]
    assert read_log(tmp_path / "none") == ()


def test_outputs_of_one_kind_are_joined_in_order():
    outputs = [
        {"output_type": "stream", "name": "stdout", "text": ["a\n", "b\n"]},
        {"output_type": "display_data", "data": {"text/plain": "chart", "image/png": "AAAA"}},
        {"output_type": "stream", "name": "stdout", "text": "c\n"},
    ]
    assert by_kind(outputs) == {"stdout": "a\nb\nc\n", "text/plain": "chart\n"}


def test_notebooks_are_picked_by_number_and_the_most_telling_run_first():
    course = find_course()
    assert pick_notebooks(course, ["lab05"]) == ["solutions/lab05_retracing.ipynb"]
    assert len(pick_notebooks(course, [])) == len(course.pairs)
    ordered = gpu_run.in_order(course, [])
    assert Path(ordered[0]).stem.startswith("08b")
    assert sorted(ordered) == sorted(pick_notebooks(course, []))
    with pytest.raises(UsageError, match="There is no notebook '77'"):
        pick_notebooks(course, ["77"])


# The run on a GPU -----------------------------------------------------------------------------------------------------


def test_without_a_gpu_it_says_so_and_exits_3():
    command = [sys.executable, gpu_run.__file__, "--minutes", "1"]
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": ""}
    # JAX_PLATFORMS is a person's choice: it is kept, and what JAX then runs on is said.
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 3
    assert done.stderr.startswith("No GPU: JAX ")
    assert len(done.stderr.splitlines()) == 1


def alive(pid):
    """Whether a process runs. Where nobody collects orphans, a killed one stays in the table."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_a_command_whose_time_is_over_is_interrupted_and_all_it_started_is_killed(tmp_path):
    marker = tmp_path / "child"
    program = (
        "import subprocess, sys, time, pathlib\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"pathlib.Path({str(marker)!r}).write_text(str(child.pid))\n"
        "try:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('written before the end')\n"
    )
    code, seconds = gpu_run.run_within([sys.executable, "-c", program], 5.0, tmp_path / "log", dict(os.environ))
    assert code is None
    assert seconds >= 5
    assert "written before the end" in (tmp_path / "log").read_text()
    child = int(marker.read_text())
    for _ in range(300):  # a signal takes its time on a busy machine
        if not alive(child):
            break
        time.sleep(0.1)
    assert not alive(child)


def test_what_no_time_is_left_for_is_not_started(tmp_path):
    code, seconds = gpu_run.run_within(["/does/not/exist"], 1.0, tmp_path / "log", {})
    assert (code, seconds) == (None, 0.0)


def test_a_stage_without_a_report_fails_and_one_that_was_cut_is_not_run(tmp_path):
    nothing, cut = gpu_run.Stage("tests"), gpu_run.Stage("tests", not_run=["tests: the time was over"])
    for stage in (nothing, cut):
        gpu_run.count(tmp_path / "none.xml", stage)
    assert (nothing.failed, nothing.ok) == (1, False)
    assert (cut.failed, cut.ok) == (0, False)


def test_the_result_names_what_differs_and_what_was_not_run(tmp_path):
    course = find_course()
    (path,) = pick_notebooks(course, ["03"])
    cells = json.loads((course.root / path).read_text())["cells"]
    count = sum(cell["cell_type"] == "code" for cell in cells)
    runs = (
        CellRun(path, 0, "import jax", "same", {}, {}, 1.0),
        CellRun(path, 1, "print(3)", "differs", {"stdout": "3\n"}, {"stdout": "4\n"}, 1.0),
    )
    result = gpu_run.result_of(course.root, path, runs)
    assert (result.same, result.differs, result.not_run) == (1, 1, count - 2)
    gpu_run.write_junit(tmp_path / "notebooks.xml", runs)
    cut = gpu_run.Stage("notebooks")
    gpu_run.count(tmp_path / "notebooks.xml", cut)
    assert (cut.passed, cut.failed) == (1, 1)
    facts = {"devices": ["card"], "backend": "gpu", "python": "3", "jax": "1", "jaxlib": "1", "machine": "m"}
    stage = gpu_run.Stage("notebooks", failed=1, not_run=[f"{path}: some"])
    told = gpu_run.write_report(tmp_path, facts, [stage], [result], runs)
    assert f"{path} cell 1: print(3)" in told
    assert f"{path}: some" in told
    assert "-3\n+4\n" in (tmp_path / "differences.diff").read_text()
    document = json.loads((tmp_path / "result.json").read_text())
    assert document["ok"] is False
    assert document["cells"][0]["now"] == {"stdout": "4\n"}


@pytest.mark.parametrize(("on_gpu", "name"), [(True, "XLA_CLIENT_MEM_FRACTION"), (False, "TRACEONCE_GPU_DRY")])
def test_processes_that_share_a_gpu_get_a_part_of_it_each(on_gpu, name, tmp_path):
    environment = gpu_run.environment_for(on_gpu, 4, tmp_path)
    assert name in environment
    if on_gpu:
        assert 4 * float(environment["XLA_CLIENT_MEM_FRACTION"]) <= 0.6
    else:
        assert environment["JAX_PLATFORMS"] == "cpu"


def test_a_notebook_whose_kernel_does_not_start_has_raised(tmp_path):
    notebook(tmp_path / "small.ipynb")
    document = json.loads((tmp_path / "small.ipynb").read_text())
    document["metadata"]["kernelspec"] = {"name": "no-such-kernel", "display_name": "none"}
    (tmp_path / "small.ipynb").write_text(json.dumps(document))
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    command = nbval_command(["small.ipynb"], tmp_path / "log", workers=0)
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    runs = read_log(tmp_path / "log")
    assert done.returncode == 1
    assert {run.verdict for run in runs} == {"raised"}
    assert "no-such-kernel" in runs[0].now["error"]
