"""The workflows for hosted CI call what exists, and say no more than the project supports."""

import re
from pathlib import Path

import pytest
import typer.main
import yaml

from traceonce.cli import app

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = set(re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.M)[1].split())
VARIABLES = set(re.findall(r"\$\((?:if )?(?:\$\(filter(?:-out)? [^,]*,\$\()?([A-Z]+)\)", MAKEFILE)) | {"UPGRADE"}


def jobs(path):
    return yaml.safe_load(path.read_text())["jobs"]


def commands(path):
    """What each step of a workflow runs, once for each value of the matrix."""
    found = []
    for job in jobs(path).values():
        matrix = job.get("strategy", {}).get("matrix", {})
        for step in job["steps"]:
            text = step.get("run", "")
            key = re.search(r"\$\{\{ matrix\.(\w+) \}\}", text)
            values = matrix[key[1]] if key else [None]
            found += [text.replace(key[0], value) if key else text for value in values]
    return [text for text in found if text]


def made(text):
    """The targets that a step makes, and the variables that it sets for them."""
    for call in re.finditer(r"(?<![\w`/-])make ([a-z][a-z-]*)((?: [A-Z]+=(?:\"[^\"]*\"|\S+))*)", text):
        yield call[1], re.findall(r" ([A-Z]+)=", call[2])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_make_that_a_workflow_calls_is_a_target_with_these_variables(path):
    calls = [call for text in commands(path) for call in made(text)]
    assert calls, "a workflow calls make, and nothing that stands in the Makefile is copied into it"
    for target, variables in calls:
        assert target in TARGETS
        assert re.search(rf"^{target}:", MAKEFILE, re.M)
        assert set(variables) <= VARIABLES


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_command_of_ours_that_a_workflow_calls_exists(path):
    known = typer.main.get_command(app)
    for text in commands(path):
        for call in re.finditer(r"traceonce ([a-z]+)(?: ([a-z]+))?", text):
            command = known.commands[call[1]]
            if call[2] and hasattr(command, "commands"):
                assert call[2] in command.commands


def test_every_stage_and_notebook_that_a_workflow_names_exists():
    from run import STAGES

    from traceonce.author.changes import pick_notebooks
    from traceonce.author.course import find_course

    texts = [text for path in WORKFLOWS for text in commands(path)]
    stages = [name for text in texts for found in re.findall(r'STAGES="([^"$]*)"', text) for name in found.split()]
    assert stages
    assert set(stages) <= {stage.name for stage in STAGES}
    names = [name for text in texts for found in re.findall(r'NOTEBOOKS="([^"$]*)"', text) for name in found.split()]
    assert names
    assert len(pick_notebooks(find_course(), names)) >= len(names)


def test_cpu_checks_run_on_every_supported_python_and_on_both_ends_of_jax():
    matrix = jobs(ROOT / ".github/workflows/cpu.yml")["test"]["strategy"]["matrix"]
    supported = re.findall(r'"Programming Language :: Python :: (\d\.\d+)"', (ROOT / "pyproject.toml").read_text())
    assert matrix["python"] == supported
    assert matrix["make"] == ["test", "test-latest"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_says_what_it_may_do_and_when_it_gives_up(path):
    document = yaml.safe_load(path.read_text())
    rights = [document.get("permissions"), *(job.get("permissions") for job in document["jobs"].values())]
    assert any(rights)
    assert "write-all" not in rights
    assert all(job["timeout-minutes"] <= 90 for job in document["jobs"].values())


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_no_step_runs_a_text_that_others_write(path):
    # What an expression gives is put into the script before a shell reads it: a title or a branch could hold commands.
    for text in commands(path):
        assert not re.search(r"\$\{\{\s*(github\.event|github\.head_ref|inputs)\b", text)


def test_a_gpu_runner_gets_no_code_without_a_maintainers_word():
    document = yaml.safe_load((ROOT / ".github/workflows/gpu.yml").read_text())
    triggers = document.get("on", document.get(True))  # YAML 1.1 reads the word "on" as a truth
    assert set(triggers) == {"workflow_dispatch", "pull_request"}
    assert triggers["pull_request"] == {"types": ["labeled"]}
    (job,) = document["jobs"].values()
    assert "gpu" in job["runs-on"]
    assert "github.event.label.name == 'gpu'" in job["if"]
