"""The commands as they are typed: what they say, and how they exit."""

import json
import subprocess
import sys

import pytest


def traceonce(*arguments, cwd):
    command = [sys.executable, "-m", "traceonce", "bundle", *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arguments", "made"),
    [
        (
            ("nbgrader", "--lab", "lab01_pure_functions", "--lab", "lab02_random_keys", "--out", "out"),
            "with lab01_pure_functions, lab02",
        ),
        (
            ("gradescope", "--lab", "lab01_pure_functions", "--out", "out"),
            "29 points, for a container of 768 MB or more",
        ),
        (("students", "--out", "out"), "no text of a solution or of a hidden assert is in it"),
    ],
)
def test_a_bundle_is_made_once_and_replaced_when_asked(tmp_path, arguments, made):
    first = traceonce(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert made in first.stdout
    again = traceonce(*arguments, cwd=tmp_path)
    assert again.returncode == 2
    assert again.stderr == "traceonce: out is there already: choose another --out, or say --force to replace it.\n"
    assert traceonce(*arguments, "--force", cwd=tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("nbgrader", "--lab", "lab77_none", "--out", "out"),
            "There is no lab 'lab77_none': the labs are lab01_pure_functions,",
        ),
        (
            ("gradescope", "--lab", "lab77_none", "--out", "out"),
            "There is no lab 'lab77_none': the labs are lab01_pure_functions,",
        ),
        (
            ("gradescope", "--lab", "lab01_pure_functions", "--out", "out", "--memory-limit", "9"),
            "must be at least 512 MB.",
        ),
        (
            ("gradescope", "--lab", "lab01_pure_functions", "--out", "out", "--seed-file", "none"),
            "The seed file none cannot be read",
        ),
        (("students", "--out", "."), "is a folder"),
    ],
)
def test_wrong_usage_is_a_sentence_and_exit_code_2(tmp_path, arguments, sentence):
    done = traceonce(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [("nbgrader",), ("gradescope", "--lab", "lab01_pure_functions"), ("students",)])
def test_a_place_that_cannot_be_written_is_a_sentence_and_exit_code_3(kind, tmp_path):
    (tmp_path / "file").touch()
    done = traceonce(*kind, "--out", "file/out", cwd=tmp_path)
    assert done.returncode == 3
    assert "cannot be written" in done.stderr
    assert "Traceback" not in done.stderr


def test_options_that_are_missing_are_wrong_usage(tmp_path):
    assert traceonce("gradescope", "--out", "out", cwd=tmp_path).returncode == 2
    assert traceonce("students", cwd=tmp_path).returncode == 2


def test_the_settings_say_what_was_asked_for(tmp_path):
    import zipfile

    options = ("--time-limit", "90", "--memory-limit", "1024", "--out", "out.zip")
    assert traceonce("gradescope", "--lab", "lab01_pure_functions", *options, cwd=tmp_path).returncode == 0
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        settings = json.loads(archive.read("settings.json"))
    assert (settings["time_limit"], settings["memory_limit"], settings["container_mb"]) == (90.0, 1024, 1280)
