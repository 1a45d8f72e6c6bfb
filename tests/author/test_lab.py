"""Labs are read whole; submissions are read whatever is in them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.lab import PARTS_CAP, Cell, Lab, find_root, lab_names, load_lab, read_submission


def code(grade_id: str, source: str, cell_type: str = "code") -> dict:
    return {"cell_type": cell_type, "source": source, "metadata": {"nbgrader": {"grade_id": grade_id}}, "outputs": []}


def notebook(*cells: object, lab: object = "lab01_tiny") -> dict:
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": {"traceonce": {"lab": lab}}, "cells": list(cells)}


ADD, DOUBLE = code("add", "def add(a, b): return a + b"), code("double", "def double(a): return 2 * a")


@pytest.fixture
def submit(tmp_path: Path, root: Path):
    """Write some content as a submission and read it."""

    def write(content: object, name: str = "anna.ipynb", **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
        return read_submission(path, root=root, **options)

    return write


def kinds(submission) -> list[str]:
    return [found.kind for found in submission.diagnoses]


def test_lab_by_name_and_by_path_is_the_same(root):
    lab = load_lab("lab01_tiny", root=root)
    assert lab == load_lab(root / "solutions" / "lab01_tiny.py")
    assert lab.name == "lab01_tiny"
    assert [cell.grade_id for cell in lab.solutions] == ["add", "double"]
    assert [(cell.grade_id, cell.points) for cell in lab.tests] == [("test_add", 1.0), ("test_double", 2.0)]
    assert [cell.kind for cell in lab.code] == ["given", "solution", "solution"]
    assert "return a + b" in lab["add"].source
    assert lab["add"].index == 3


def test_lab_reads_the_same_from_a_notebook(root, tmp_path):
    import jupytext

    path = tmp_path / "lab01_tiny.ipynb"
    jupytext.write(jupytext.read(root / "solutions" / "lab01_tiny.py", fmt="py:percent"), path)
    assert load_lab(path) == load_lab("lab01_tiny", root=root)


def test_unknown_lab_names_those_that_exist(root):
    with pytest.raises(UsageError, match="the labs are lab01_tiny"):
        load_lab("lab99_none", root=root)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"grade_id": "double"', '"grade_id": "add"', "stands in two cells"),
        ('"grade_id": "double", ', "", "has no grade_id"),
        ('"points": 2', '"points": -2', "not negative"),
        ('"points": 2', '"points": NaN', "not negative"),
        ('"solution": true', '"solution": false', "not a lab"),
    ],
)
def test_faulty_lab_is_refused(root, old, new, says):
    path = root / "solutions" / "lab01_tiny.py"
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(TraceOnceError, match=says):
        load_lab("lab01_tiny", root=root)


def test_root_is_the_checkout_of_the_package_or_above_the_current_folder(root, monkeypatch, tmp_path):
    import traceonce.grade.lab as module

    monkeypatch.setattr(module, "__file__", str(tmp_path / "x" / "site-packages" / "traceonce" / "grade" / "lab.py"))
    assert find_root(root / "course" / "01_tiny") == root
    with pytest.raises(TraceOnceError, match="No course is found"):
        find_root(tmp_path)
    monkeypatch.setattr(module, "__file__", str(root / "src" / "traceonce" / "grade" / "lab.py"))
    assert find_root(tmp_path) == root
    assert lab_names() == ("lab01_tiny",)


def test_whole_submission_is_read_by_its_metadata(submit):
    submission = submit(notebook(ADD, DOUBLE))
    assert submission.lab == "lab01_tiny"
    assert dict(submission.cells) == {"add": ADD["source"], "double": DOUBLE["source"]}
    assert submission.diagnoses == ()
    assert submission.gradable


def test_source_may_be_a_list_of_lines(submit):
    assert submit(notebook(code("add", ["a = 1\n", "b = 2"]), DOUBLE)).cells["add"] == "a = 1\nb = 2"


def test_file_name_says_the_lab_where_metadata_does_not(submit):
    content = notebook(ADD, DOUBLE, lab=None)
    assert submit(content, "anna_lab01_tiny (1).ipynb").lab == "lab01_tiny"
    assert kinds(submit(content, "anna.ipynb")) == ["unknown_lab"]
    assert submit(content, "anna.ipynb", lab="lab01_tiny").lab == "lab01_tiny"


def test_metadata_can_name_no_file(submit):
    submission = submit(notebook(ADD, DOUBLE, lab="../../solutions/lab01_tiny"))
    assert kinds(submission) == ["unknown_lab"]
    assert not submission.gradable


def test_wrong_lab(submit):
    submission = submit(notebook(ADD, lab="lab02_other"), lab="lab01_tiny")
    assert kinds(submission) == ["wrong_lab"]
    assert "lab01_tiny was asked for" in submission.diagnoses[0].sentence


def test_missing_cell_is_named_and_the_others_are_kept(submit):
    submission = submit(notebook(DOUBLE))
    assert [(found.kind, found.grade_id) for found in submission.diagnoses] == [("missing", "add")]
    assert list(submission.cells) == ["double"]
    assert submission.gradable


def test_duplicated_cell_counts_only_where_the_copies_agree(submit):
    assert kinds(submit(notebook(ADD, ADD, DOUBLE))) == []
    submission = submit(notebook(ADD, code("add", "def add(a, b): return 0"), DOUBLE))
    assert kinds(submission) == ["duplicated"]
    assert list(submission.cells) == ["double"]


def test_retyped_cell(submit):
    assert kinds(submit(notebook(code("add", "text", "markdown"), DOUBLE))) == ["retyped"]


def test_reordered_cells_are_taken_in_the_labs_order(submit):
    submission = submit(notebook(DOUBLE, ADD))
    assert kinds(submission) == ["reordered"]
    assert list(submission.cells) == ["add", "double"]


def test_lone_surrogate_is_not_text(submit):
    assert kinds(submit(notebook(code("add", "a = '\ud800'"), DOUBLE))) == ["not_text"]


def test_own_code_cells_are_counted(submit):
    helper = {"cell_type": "code", "source": "def helper(): ...", "metadata": {}}
    assert submit(notebook(ADD, helper, DOUBLE, code("setup", "import math"))).own_code_cells == 1


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"PK\x03\x04 zip", "not_json"),
        (b"\xff\xfe\x00", "not_json"),
        (b'{"cells": [', "not_json"),
        (b"[" * 500_000, "not_json"),
        (b'{"a":' * 100_000, "not_json"),
        (b'{"cells": [' + b"9" * 5000 + b"]}", "not_json"),
        (b"[1]", "not_notebook"),
        (b"NaN", "not_notebook"),
        (b'{"cells": 1}', "not_notebook"),
        (b'{"cells": [1]}', "not_notebook"),
        (b'{"worksheets": []}', "not_notebook"),
        (b'{"cells": []}', "empty"),
        (b'{"cells": [' + b"[]," * PARTS_CAP + b"1]}", "too_large"),
    ],
)
def test_what_is_not_a_notebook_is_diagnosed(submit, content, kind):
    submission = submit(content)
    assert kinds(submission) == [kind]
    assert not submission.gradable
    assert submission.diagnoses[0].whole_file


def test_file_over_the_cap_is_not_read(submit):
    content = notebook(ADD, DOUBLE)
    size = len(json.dumps(content))
    assert kinds(submit(content, size_cap=size)) == []
    assert kinds(submit(content, size_cap=size - 1)) == ["too_large"]


def test_links_pipes_folders_and_absent_files_are_not_opened(tmp_path, root):
    target = tmp_path / "real.ipynb"
    target.write_text(json.dumps(notebook(ADD, DOUBLE)), "utf-8")
    (tmp_path / "link.ipynb").symlink_to(target)
    os.mkfifo(tmp_path / "pipe.ipynb")
    (tmp_path / "folder.ipynb").mkdir()
    for name in ("link", "pipe", "folder", "absent", "nul\0name"):
        assert kinds(read_submission(tmp_path / f"{name}.ipynb", root=root)) == ["unreadable"], name


def test_sentences_show_no_control_characters_of_a_stranger(submit):
    sentence = submit(notebook(ADD, lab="\x1b[31m" + "x" * 500)).diagnoses[0].sentence
    assert "\x1b" not in sentence
    assert len(sentence) < 300


TINY = Lab("lab01_tiny", (Cell("add", "solution", "..."), Cell("double", "solution", "...")))

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["add", "double", "code"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)
cells = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": anything,
        "source": anything,
        "metadata": anything | st.fixed_dictionaries({"nbgrader": anything}) |
        st.fixed_dictionaries({"nbgrader": st.fixed_dictionaries({"grade_id": anything})}),
    },
)  # fmt: skip


@given(content=st.fixed_dictionaries({"cells": st.lists(anything | cells)}, optional={"metadata": anything}))
def test_no_json_makes_it_raise(content, tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "any"
    folder.mkdir(exist_ok=True)
    path = folder / "any.ipynb"
    path.write_text(json.dumps(content), "utf-8")
    submission = read_submission(path, TINY)
    assert all(found.sentence for found in submission.diagnoses)
    assert set(submission.cells) <= {"add", "double"}


def test_import_pulls_in_no_notebook_library():
    script = "import sys, traceonce.grade.lab as _; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "traceonce.grade.lab" in loaded
    assert not {"nbformat", "jupytext", "jax", "numpy"} & set(loaded)
