"""The archive for learners: what is in it, what is not, and that it works where nothing else is."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from urllib.parse import unquote

import pytest

from traceonce.author.course import Course
from traceonce.bundle.leaks import code_lines, find_leaks, secrets_in
from traceonce.bundle.output import Part
from traceonce.bundle.students import TOP, bundle_students, student_parts
from traceonce.desk.copies import refresh, sheets
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.lab import find_root, lab_names, load_lab

ROOT = find_root()
LESSON = "course/01_pure_functions/01_pure_functions.ipynb"
_LINK = re.compile(r"\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)")


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    place = tmp_path_factory.mktemp("students")
    assert bundle_students(out=place / "course.zip") > 100
    with zipfile.ZipFile(place / "course.zip") as archive:
        archive.extractall(place)
    return place / TOP


def _files(folder):
    return [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]


def _in(unpacked, *command, **environment):
    """Run Python in the archive with its own `traceonce` and nothing of the checkout's."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    return subprocess.run(
        [sys.executable, *command],
        cwd=unpacked,
        env=kept
        | {"PYTHONPATH": str(unpacked / "src"), "TRACEONCE_PROGRESS": str(unpacked.parent / "progress.json")}
        | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_what_goes_in_and_what_does_not(unpacked):
    names = _files(unpacked)
    assert {
        Path(LESSON),
        Path("labs/lab01_pure_functions.ipynb"),
        Path("requirements/learn.txt"),
        Path("README.md"),
    } <= set(names)
    assert {name.parts[0] for name in names} == {
        ".binder", "LICENSE", "LICENSE-COURSE", "Makefile", "README.md", "course", "deploy", "docs", "labs", "pyproject.toml", "requirements", "src",
    }  # fmt: skip
    docs = {str(name.relative_to("docs")) for name in names if name.parts[0] == "docs"}
    assert docs >= {"observe.md", "own_code.md"}
    assert docs.isdisjoint({"authoring.md", "claims.toml", "design.md", "grading.md"})
    assert not [name for name in docs if name.startswith("graders")]
    hidden = [name for name in names if any(part.startswith(".") or part == "__pycache__" for part in name.parts)]
    assert sorted(map(str, hidden)) == [".binder/postBuild", ".binder/runtime.txt"]
    assert not [name for name in names if name.parts[0] in ("course", "labs") and name.suffix == ".py"]


def test_no_text_of_a_solution_or_of_a_hidden_assert_is_in_it(unpacked):
    parts = {str(name): Part.of(unpacked / name) for name in _files(unpacked)}
    assert list(find_leaks(parts, secrets_in(ROOT))) == []


def test_no_name_of_a_hidden_assert_and_no_header_of_a_proof_is_in_it(unpacked):
    """A second search, by other text than the bodies."""
    visible = {cell.grade_id for name in lab_names(ROOT) for cell in load_lab(name, root=ROOT).tests}
    hidden = set()
    for path in (ROOT / "tests" / "hidden").glob("*.py"):
        hidden |= set(re.findall(r"^def (test_\w+)", path.read_text(), re.MULTILINE))
    hidden -= visible
    assert len(hidden) > 100
    whole = "\n".join((unpacked / name).read_text("utf-8", "replace") for name in _files(unpacked))
    assert hidden & set(re.findall(r"\btest_\w+", whole)) == set()
    assert not re.search(r"^# (trap|fails): ", whole, re.MULTILINE)


def test_no_link_leads_to_a_file_that_was_left_out(unpacked):
    # A link to what is missing in the checkout as well is not the archive's fault.
    committed = set(Course(ROOT).tracked_files())
    broken = []
    for name in _files(unpacked):
        if name.suffix == ".md":
            texts = [(unpacked / name).read_text()]
        elif name.suffix == ".ipynb":
            cells = json.loads((unpacked / name).read_text())["cells"]
            texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
        else:
            continue
        for target in (link["target"] for text in texts for link in _LINK.finditer(text)):
            file = unquote(target.partition("#")[0])
            there = file and "://" not in target and Path(os.path.normpath(name.parent / file)) in committed
            if there and not (unpacked / name.parent / file).exists():
                broken.append((str(name), target))
    assert broken == []


def test_the_tools_in_it_are_the_ones_that_run(unpacked):
    done = _in(unpacked, "-c", "import traceonce; print(traceonce.__file__)")
    assert done.stdout.strip() == str(unpacked / "src" / "traceonce" / "__init__.py")


def test_a_lesson_runs_there_and_prints_what_is_stored_in_it(unpacked):
    done = _in(unpacked, "-m", "pytest", "--nbval", "-q", "-p", "no:cacheprovider", "--nbval-cell-timeout=120", LESSON)
    assert done.returncode == 0, done.stdout[-3000:]
    assert re.search(r"\d+ passed", done.stdout)
    assert "failed" not in done.stdout


def test_a_learner_checks_a_lab_there(unpacked):
    starter = "labs/lab01_pure_functions.ipynb"
    done = _in(unpacked, "-m", "traceonce", "grade", "--trusted", starter)
    assert done.returncode == 1, done.stderr
    assert "0 of 5 cells with visible asserts pass (lab01_pure_functions)" in done.stdout
    assert "NotImplementedError" in done.stdout
    answered = json.loads((unpacked / starter).read_text())
    solved = json.loads((ROOT / "solutions" / "lab01_pure_functions.ipynb").read_text())
    answers = {cell["metadata"].get("nbgrader", {}).get("grade_id"): cell["source"] for cell in solved["cells"]}
    for cell in answered["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("solution"):
            cell["source"] = answers[cell["metadata"]["nbgrader"]["grade_id"]]
    place = unpacked.parent / "mine.ipynb"
    place.write_text(json.dumps(answered))
    done = _in(unpacked, "-m", "traceonce", "grade", "--trusted", str(place))
    assert done.returncode == 0, done.stdout
    assert "5 of 5 cells" in done.stdout


def test_a_learner_who_asks_for_hidden_asserts_is_told_that_there_are_none(unpacked):
    out = unpacked.parent / "grades"
    done = _in(unpacked, "-m", "traceonce", "grade", "labs/lab01_pure_functions.ipynb", "--out", str(out))
    assert done.returncode == 3
    assert "which has no hidden asserts: check your own work with --trusted" in done.stderr
    assert not out.exists()


def test_a_desk_is_made_of_it(unpacked, tmp_path):
    done = refresh(tmp_path / "work", sheets(unpacked))
    assert {str(name) for name in done.made} >= {"index.ipynb", "labs/lab01_pure_functions.ipynb"}


@pytest.fixture
def checkout(tmp_path):
    """A copy of what the archive is made of, without version control."""
    root = tmp_path / "checkout"
    for name, part in student_parts(ROOT).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(part.content)
    for folder in ("solutions", "tests/hidden"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    return root


def _solution(name):
    secret = next(one for one in secrets_in(ROOT) if one.where.startswith(f"solutions/{name}") and len(one.lines) > 3)
    return "\n".join(secret.lines)


@pytest.mark.parametrize("where", ["a docstring", "a lesson", "a lab", "the answer of a lab"])
def test_a_leak_stops_the_archive(checkout, where, tmp_path):
    secret = _solution("lab02_random_keys")
    assert len(code_lines(secret)) > 3
    if where == "a docstring":
        (checkout / "src/traceonce/show/extra.py").write_text(f'"""For example::\n\n{secret}\n"""\n')
    else:
        path = checkout / (LESSON if where == "a lesson" else "labs/lab02_random_keys.ipynb")
        notebook = json.loads(path.read_text())
        if where == "the answer of a lab":
            path.write_text((checkout / "solutions/lab02_random_keys.ipynb").read_text())
        else:
            notebook["cells"].append(
                {"cell_type": "code", "source": secret.splitlines(keepends=True), "metadata": {}, "outputs": []}
            )
            path.write_text(json.dumps(notebook))
    out = tmp_path / "out.zip"
    with pytest.raises(TraceOnceError, match="hold text of a solution") as caught:
        bundle_students(out=out, root=checkout)
    assert caught.value.exit_code == 3
    assert "lab02_random_keys.py" in str(caught.value)
    assert not out.exists()


def test_the_copy_without_a_leak_is_packed_and_hidden_files_stay_out(checkout, tmp_path):
    (checkout / "course" / ".ipynb_checkpoints").mkdir()
    (checkout / "course" / ".ipynb_checkpoints" / "draft.ipynb").write_text("{}")
    (checkout / "labs" / "link.ipynb").symlink_to("/etc/passwd")
    out = tmp_path / "out.zip"
    assert bundle_students(out=out, root=checkout) == len(student_parts(ROOT))
    with pytest.raises(UsageError, match="--force"):
        bundle_students(out=out, root=checkout)
    assert bundle_students(out=out, root=checkout, force=True)


def test_a_checkout_that_lacks_a_file_is_told(checkout, tmp_path):
    (checkout / "requirements" / "learn.txt").unlink()
    with pytest.raises(TraceOnceError, match="learn\\.txt is not there"):
        bundle_students(out=tmp_path / "out.zip", root=checkout)


def test_where_there_is_nothing_to_search_for_no_archive_is_made(unpacked, tmp_path):
    """A search that cannot find anything would pass whatever is in the archive."""
    with pytest.raises(TraceOnceError, match="make the archive in a whole checkout"):
        bundle_students(out=tmp_path / "out.zip", root=unpacked)
