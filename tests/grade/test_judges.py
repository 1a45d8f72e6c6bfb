"""The judge's processes: one that waits, one for each file of hidden asserts, and one for each submission."""

import json
import os
import signal
import time

import psutil
import pytest
import tinylab

from traceonce.grade import Work, grade_submissions
from traceonce.grade.lab import load_lab, read_submission

DOUBLE = {"double": "\ndef double(x):\n    return 2 * x\n"}
HIDDEN = """
import os, time
import numpy as np
import pytest
from traceonce.grade.hidden import graded

seen = []

@pytest.fixture(scope="module")
def once():
    seen.append(1)
    return len(seen)

@pytest.mark.parametrize("size", [2, 3])
@graded(points=1, task="double", title="Doubles", hint="It should be twice as much.")
def test_doubles(lab, once, size):
    time.sleep(SECONDS)
    x = lab.rng.normal(size=size).astype("float32")
    assert np.allclose(lab.call("double", x), 2 * x)
    seen.append(2)
    assert once == 1
"""
ENDS_WHILE_IT_IS_READ = "import os, time\ntime.sleep(1)\nos._exit(1)\n"


@pytest.fixture
def batch(tmp_path):
    """Grades three copies of the reference of each lab, in turn; `labs` has the hidden asserts of each by its name."""

    def grade(labs):
        works = []
        for name, hidden in labs.items():
            root = tmp_path
            tinylab.write_lab(root, name, DOUBLE, hidden)
            lab = load_lab(name, root=root)
            for number in range(3):
                path = root / f"{name}_{number}.ipynb"
                path.write_text(json.dumps(tinylab.notebook({}, lab)))
                works.append((number, Work(path.stem, path.stem, read_submission(path, lab, root=root), lab)))
        ordered = [work for _, work in sorted(works, key=lambda pair: pair[0])]
        yield from grade_submissions(ordered, seed=b"s" * 32, root=tmp_path, workers=2, share_compiled=False)

    return grade


def test_no_judge_finds_what_another_one_left(batch):
    records = list(batch({"lab94_alone": HIDDEN.replace("SECONDS", "0")}))
    assert [record.status for record in records] == ["passed"] * 3


def test_hidden_asserts_that_end_their_process_take_no_other_lab_along(batch):
    records = {
        r.submission: r for r in batch({"lab94_a": ENDS_WHILE_IT_IS_READ, "lab94_b": HIDDEN.replace("SECONDS", "0")})
    }
    assert {name: record.status for name, record in records.items() if "_b_" in name} == {
        f"lab94_b_{number}": "passed" for number in range(3)
    }
    for number in range(3):
        record = records[f"lab94_a_{number}"]
        assert (record.status, record.defect) == ("error", "the judge ended before it was done")


def test_a_killed_process_of_a_file_costs_at_most_what_it_was_judging(batch):
    rows = batch({"lab94_killed": HIDDEN.replace("SECONDS", "0.3")})
    first = next(rows)
    (supervisor,) = _named("supervisor", psutil.Process())
    (judge,) = _named("judge", supervisor)
    files = judge.children()
    assert len(files) == 1
    os.kill(files[0].pid, signal.SIGKILL)
    rest = list(rows)
    assert first.status == "passed"
    assert {record.status for record in rest} <= {"passed", "error"}
    assert {record.defect for record in rest} <= {"", "the judge ended before it was done"}
    deadline = time.monotonic() + 10
    while files[0].is_running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not files[0].is_running()


def _named(part, parent):
    return [child for child in parent.children() if f"traceonce.grade.{part}" in child.cmdline()]
