"""The autograder archive, unpacked below a temporary folder and run as Gradescope runs it."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import reachable
import tinylab

from traceonce.bundle import gradescope_run
from traceonce.bundle.gradescope import GRADER_MB, Settings, bundle_gradescope
from traceonce.doctor.machine import Machine
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.record import AssertRecord, Record

LAB = tinylab.LAB
CANARY = "HIDDEN-CANARY-5b1f"
MUTATES = "def step(params, gradient, rate):\n    params['w'] -= rate * gradient\n    return params"
WITHOUT_NAMESPACES = Path(__file__).with_name("without_namespaces.py")


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    out = tmp_path_factory.mktemp("gradescope") / "lab.zip"
    made = bundle_gradescope(lab=LAB, out=out, root=tinylab.COURSE)
    assert (made.points, made.container_mb) == (5.0, 512 + GRADER_MB)
    return out


@pytest.fixture
def home(archive, tmp_path):
    return unpack(archive, tmp_path / "autograder")


def unpack(archive, home):
    """``/autograder`` as Gradescope makes it."""
    for name in ("submission", "results"):
        (home / name).mkdir(parents=True)
    # The standard library's own unpacking leaves out who may run a file.
    subprocess.run([sys.executable, "-m", "zipfile", "-e", str(archive), str(home / "source")], check=True)
    shutil.copy(home / "source" / "run_autograder", home)
    for program in (home / "run_autograder", home / "source" / "setup.sh"):
        program.chmod(0o755)
    return home


def start(home, *before, python=sys.executable, program="run_autograder"):
    environment = {"TRACEONCE_AUTOGRADER": str(home), "TRACEONCE_PYTHON": python, "HOME": os.environ["HOME"]}
    environment |= {"PATH": "/usr/bin:/bin"}
    command = [*before, str(home / program)]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, timeout=300, check=False)


def results(home):
    return json.loads((home / "results" / "results.json").read_text())


def hand_in(home, changes=None, name="answer"):
    tinylab.write(home / "submission", name, changes)


def as_student(document):
    """All that Gradescope shows to a student."""
    shown = [test for test in document["tests"] if test["visibility"] == "visible"]
    return json.dumps([document["output"], shown])


def test_the_archive_has_what_gradescope_asks_for_and_no_address(archive):
    with zipfile.ZipFile(archive) as found:
        names = set(found.namelist())
        rights = {info.filename: info.external_attr >> 16 & 0o777 for info in found.infolist()}
        texts = {name: found.read(name).decode() for name in names if not name.endswith(".whl")}
        (wheel,) = names - texts.keys()
        with found.open(wheel) as inner, zipfile.ZipFile(inner) as project:
            packed = set(project.namelist())
    assert {"setup.sh", "run_autograder", "requirements.txt", "bootstrap.txt", "settings.json", "seed"} <= names
    assert (rights["setup.sh"], rights["run_autograder"], rights["seed"]) == (0o755, 0o755, 0o600)
    assert "--hash=sha256:" in texts["requirements.txt"]
    assert {"traceonce/bundle/gradescope_run.py", "traceonce/grade/judge.py"} <= packed
    assert not any("hidden/" in name or "solutions/" in name for name in packed)
    assert not [name for name, text in texts.items() if "://" in text]
    assert "at least 768 MB" in texts["README.md"]


def test_every_requirement_is_pinned_and_hashed(archive):
    with zipfile.ZipFile(archive) as found:
        for name in ("requirements.txt", "bootstrap.txt"):
            entries = found.read(name).decode().replace("\\\n", " ").splitlines()
            pinned = [line for line in entries if line and not line.startswith("#")]
            assert pinned
            assert all("==" in line and "--hash=sha256:" in line for line in pinned), name


def test_full_marks(home):
    hand_in(home)
    done = start(home)
    assert done.returncode == 0, done.stderr
    document = results(home)
    assert document["score"] == 5.0
    assert document["stdout_visibility"] == "hidden"
    *asserts, about = document["tests"]
    assert [(test["score"], test["max_score"], test["status"]) for test in asserts] == [
        (points, points, "passed") for points in (1.0, 1.0, 2.0, 1.0)
    ]
    assert (about["name"], about["visibility"]) == ("How it was graded", "hidden")
    assert "Isolation: namespaces." in about["output"]
    assert "score" not in about
    extra = document["extra_data"]
    assert (extra["status"], extra["tier"], extra["accepted_tier"]) == ("passed", "namespaces", "namespaces")


def test_a_wrong_answer_gets_its_points_and_its_hint_and_nothing_hidden(home):
    hand_in(home, {"step": MUTATES})
    assert start(home).returncode == 0
    document = results(home)
    assert document["score"] == 3.0
    assert "Hint: Build a new dict." in as_student(document)
    seed = (home / "source" / "seed").read_text().strip()
    for secret in (CANARY, seed, "test_leaves_arguments_alone", "same_tree", "Isolation"):
        assert secret not in as_student(document)


def test_nothing_and_a_wrong_file_and_two_answers_are_told(home):
    assert start(home).returncode == 0
    assert (results(home)["score"], results(home)["extra_data"]["status"]) == (0.0, "missing")
    assert f"hand in {LAB}.ipynb" in as_student(results(home))
    (home / "submission" / "junk.ipynb").write_text("this is no notebook")
    assert start(home).returncode == 0
    assert results(home)["extra_data"]["status"] == "malformed"
    hand_in(home)  # with a notebook of the lab beside it the junk does not count
    assert start(home).returncode == 0
    assert results(home)["score"] == 5.0
    hand_in(home, {"step": MUTATES}, name="another")
    assert start(home).returncode == 0
    assert results(home)["score"] == 0.0
    assert "another.ipynb, answer.ipynb" in as_student(results(home))


def test_where_namespaces_are_refused_nothing_is_graded_and_everybody_is_told(home):
    hand_in(home)
    done = start(home, sys.executable, str(WITHOUT_NAMESPACES))
    assert done.returncode == 3
    document = results(home)
    assert document["score"] == 0.0
    assert document["output"].startswith("NOT GRADED, so this 0 is no grade: tell your teacher.")
    (about,) = document["tests"]
    assert about["visibility"] == "hidden"
    assert "The sandbox cannot be built here" in about["output"]
    extra = document["extra_data"]
    assert (extra["status"], extra["tier"], extra["accepted_tier"]) == ("not_graded", "", "namespaces")
    assert "The sandbox cannot be built here" in done.stderr


def test_the_isolation_that_was_chosen_grades_where_namespaces_are_refused(tmp_path):
    out = tmp_path / "lab.zip"
    made = bundle_gradescope(lab=LAB, out=out, root=tinylab.COURSE, isolation="landlock")
    assert made.isolation == "landlock"
    home = unpack(out, tmp_path / "autograder")
    container = reachable.command([sys.executable, str(WITHOUT_NAMESPACES)], hold=tmp_path / "hold")
    ready = start(home, *container, program="source/setup.sh")
    assert ready.returncode == 0, ready.stderr
    assert "isolated by landlock" in ready.stdout
    hand_in(home, {"step": MUTATES})
    done = start(home, *container)
    assert done.returncode == 0, done.stderr
    document = results(home)
    assert document["score"] == 3.0
    assert (document["extra_data"]["tier"], document["extra_data"]["accepted_tier"]) == ("landlock", "landlock")
    assert "Isolation: landlock." in document["tests"][-1]["output"]
    assert "landlock" in (home / "source" / "README.md").read_text()


def test_a_record_of_another_tier_is_no_grade(tmp_path, monkeypatch):
    """Should the grader ever take another isolation than it was asked for, that is noticed."""
    settings = Settings(LAB, 60.0, 512, 5.0, 768)
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "settings.json").write_text(settings.to_json())
    one = AssertRecord("test_a", "double", "Doubles", "Double.", 5.0, "passed", 5.0)
    record = Record("a", "a", LAB, "a.ipynb", "passed", 5.0, 5.0, asserts=(one,), tier="landlock")
    monkeypatch.setattr(gradescope_run, "grade", lambda *_: record)
    assert gradescope_run.run(gradescope_run.Autograder(tmp_path)) == 3
    document = results(tmp_path)
    assert document["score"] == 0.0
    assert document["output"].startswith("NOT GRADED")
    assert document["extra_data"]["why"] == (
        "Student code was isolated by 'landlock', and this autograder accepts 'namespaces' alone."
    )


def test_a_damaged_archive_grades_nothing(home):
    hand_in(home)
    (home / "source" / "seed").unlink()
    assert start(home).returncode == 3
    assert "put it back" in results(home)["extra_data"]["why"]
    (home / "source" / "settings.json").write_text("{}")
    assert start(home).returncode == 3
    assert "make the archive anew" in results(home)["extra_data"]["why"]


@pytest.mark.parametrize("python", ["no/python", "half/python"])
def test_without_a_whole_environment_the_results_say_so(home, python):
    """No Python at all, or one in which nothing was installed."""
    hand_in(home)
    (home / "half").mkdir()
    (home / "half" / "python").write_text("#!/bin/sh\necho 'No module named traceonce' >&2\nexit 1\n")
    (home / "half" / "python").chmod(0o755)
    (home / "results" / "results.json").write_text('{"score": 29}')  # of an earlier run
    done = start(home, python=str(home / python))
    assert done.returncode == 3
    assert results(home)["score"] == 0
    assert results(home)["output"].startswith("NOT GRADED, so this 0 is no grade")
    assert results(home)["extra_data"]["status"] == "not_graded"
    assert "Did setup.sh come to its end?" in done.stderr


def test_setup_with_an_environment_fetches_nothing_and_grades_the_reference(home):
    ready = start(home, program="source/setup.sh")
    assert ready.returncode == 0, ready.stderr
    assert "the reference gets 5 of 5 points" in ready.stdout
    assert "isolated by namespaces. A container of 768 MB or more is needed" in ready.stdout
    assert sorted(path.name for path in home.iterdir()) == ["results", "run_autograder", "source", "submission"]
    assert (home / "source").stat().st_mode & 0o777 == 0o700


def test_setup_fails_where_the_sandbox_is_refused_or_the_reference_is_wrong(home):
    refused = start(home, sys.executable, str(WITHOUT_NAMESPACES), program="source/setup.sh")
    assert refused.returncode == 3
    assert "The sandbox cannot be built here" in refused.stderr
    source = home / "source" / "solutions" / f"{LAB}.py"
    source.write_text(source.read_text().replace("return 2 * x", "return 3 * x"))
    wrong = start(home, program="source/setup.sh")
    assert wrong.returncode == 3
    assert "The reference gets 4 of 5 points here" in wrong.stderr


def test_random_inputs_depend_on_who_hands_in_and_not_on_the_try(tmp_path):
    autograder = gradescope_run.Autograder(tmp_path)
    assert autograder.who() == "submission"
    metadata = tmp_path / "submission_metadata.json"
    metadata.write_text(json.dumps({"id": 7, "users": [{"id": 20, "name": "B"}, {"id": 10, "name": "A"}]}))
    assert autograder.who() == "users-10-20"
    metadata.write_text("{}")
    with pytest.raises(TraceOnceError, match="does not say who handed in"):
        autograder.who()


def test_a_container_that_is_too_small_is_told_to_the_teacher(tmp_path):
    for name, text in {
        "proc/self/cgroup": "0::/\n",
        "proc/self/mountinfo": "30 1 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        "sys/fs/cgroup/memory.max": f"{600 * 2**20}\n",
        "sys/fs/cgroup/memory.current": "1\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert gradescope_run.container_mb(Machine(root=tmp_path)) == 600


def test_wrong_usage_makes_nothing(tmp_path):
    taken = tmp_path / "taken.zip"
    taken.write_text("another's")
    for words in (
        {"lab": "lab77_none"},
        {"lab": LAB, "time_limit": 0},
        {"lab": LAB, "memory_limit": 100},
        {"lab": LAB, "isolation": "none"},
        {"lab": LAB, "out": taken},
        {"lab": LAB, "out": tmp_path},
    ):
        with pytest.raises(UsageError):
            bundle_gradescope(**{"out": tmp_path / "new.zip", "root": tinylab.COURSE} | words)
    assert os.listdir(tmp_path) == ["taken.zip"]
    assert taken.read_text() == "another's"


def test_a_wheel_that_cannot_be_built_is_told(tmp_path):
    shutil.copytree(Path(__file__).resolve().parents[2] / "requirements", tmp_path / "requirements")
    with pytest.raises(TraceOnceError, match="wheel cannot be built") as caught:
        bundle_gradescope(lab=LAB, out=tmp_path / "new.zip", root=tinylab.COURSE, checkout=tmp_path)
    assert caught.value.exit_code == 3
    assert not (tmp_path / "new.zip").exists()


def test_settings_survive_their_own_json(tmp_path):
    settings = Settings(LAB, 60.0, 512, 5.0, 768)
    (tmp_path / "settings.json").write_text(settings.to_json())
    assert Settings.read(tmp_path) == settings
