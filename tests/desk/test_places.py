"""The recipes for other places: a hub's image, Binder, VS Code. What they call exists, and the start script keeps a desk."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from traceonce.bundle.students import student_parts

ROOT = Path(__file__).resolve().parents[2]
HUB = ROOT / "deploy" / "hub"


@pytest.fixture
def home(tmp_path):
    """A home, and in place of the hub's server a program that writes down what it was called with."""
    programs = tmp_path / "programs"
    programs.mkdir()
    server = programs / "jupyterhub-singleuser"
    server.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    server.chmod(0o755)
    return tmp_path


def start(home, *arguments):
    environment = os.environ | {"HOME": str(home), "PATH": f"{home / 'programs'}:{os.environ['PATH']}"}
    command = [sys.executable, str(HUB / "start.py"), *arguments]
    done = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_hubs_learner_gets_a_desk_in_their_home_and_the_server_on_it(home):
    called = start(home, "--debug")
    assert called == [
        f"--ServerApp.root_dir={home / 'trace-once'}",
        "--ServerApp.default_url=/lab/tree/index.ipynb",
        "--debug",
    ]
    assert (home / "trace-once" / "01_pure_functions" / "01_pure_functions.ipynb").is_file()


def test_a_second_start_writes_nothing_over(home):
    start(home)
    lesson = home / "trace-once" / "01_pure_functions" / "01_pure_functions.ipynb"
    notebook = json.loads(lesson.read_text())
    notebook["cells"][1]["source"] = ["mine = 1"]
    lesson.write_text(json.dumps(notebook))
    start(home)
    assert json.loads(lesson.read_text())["cells"][1]["source"] == ["mine = 1"]


def test_the_image_can_be_built_from_what_learners_may_see():
    parts = student_parts(ROOT)
    recipe = (HUB / "Dockerfile").read_text()
    for path in re.findall(r"/opt/trace-once/(deploy/[\w./]+)", recipe):
        assert path in parts
    assert {"Makefile", "requirements/learn.txt", "requirements/make_env.sh", ".binder/postBuild"} <= set(parts)
    assert parts[".binder/postBuild"].mode == 0o755
    makes = re.findall(
        r"\bmake ([a-z]+)", "\n".join(line for line in recipe.splitlines() if line.startswith("RUN make"))
    )
    targets = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
    assert makes
    assert set(makes) <= set(targets)


def test_the_image_does_not_run_as_root():
    steps = (HUB / "Dockerfile").read_text().splitlines()
    users = [line.split()[1] for line in steps if line.startswith("USER ")]
    assert users == ["$NB_USER"]
    assert "ARG NB_USER=jovyan" in steps


def test_binder_installs_the_locked_list_and_no_other():
    script = (ROOT / ".binder" / "postBuild").read_text()
    lists = re.findall(r"-r (\S+)", script)
    assert lists == ["requirements/learn.txt"]
    assert "--require-hashes" in script
    assert "hatchling==" in (ROOT / lists[0]).read_text()  # the project is built without fetching its builder
    python = (ROOT / ".binder" / "runtime.txt").read_text().strip().removeprefix("python-")
    assert f"Programming Language :: Python :: {python}" in (ROOT / "pyproject.toml").read_text()


def test_the_editors_settings_are_plain_json_and_name_what_is_there():
    settings = json.loads((ROOT / ".vscode" / "settings.json").read_text())
    assert settings["python.defaultInterpreterPath"].endswith("/.venv/bin/python")
    assert json.loads((ROOT / ".vscode" / "extensions.json").read_text())["recommendations"]
