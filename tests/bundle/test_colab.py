"""The lessons for Colab: one cell more, and nothing else."""

import json

import pytest

from traceonce.bundle.colab import _PINNED, bundle_colab, install_command
from traceonce.bundle.gpu import read_list
from traceonce.errors import UsageError
from traceonce.grade.lab import find_root, lab_names

ROOT = find_root()
LESSON = "course/05_retracing/05_retracing.ipynb"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("colab") / "colab"
    names = bundle_colab(out=place, package="https://example.org/traceonce-0.1.0-py3-none-any.whl")
    return place, names


def test_each_lesson_and_lab_is_there_and_no_solution(made):
    place, names = made
    assert LESSON in names
    assert sum(name.startswith("labs/") for name in names) == len(lab_names(ROOT))
    assert not [path for path in place.rglob("*") if "solutions" in path.parts]
    assert all((place / name).is_file() for name in names)


def test_the_first_code_cell_installs_and_the_rest_is_the_course(made):
    place, names = made
    for name in names:
        ours, theirs = (json.loads((folder / name).read_text()) for folder in (ROOT, place))
        assert theirs["cells"][2:] == ours["cells"]
        command = "".join(theirs["cells"][1]["source"])
        assert command.startswith(
            '%pip install --quiet --no-deps "https://example.org/traceonce-0.1.0-py3-none-any.whl"\n'
        )
        assert len({cell["id"] for cell in theirs["cells"]}) == len(theirs["cells"])
        assert theirs["metadata"]["traceonce"].get("lab") == ours["metadata"].get("traceonce", {}).get("lab")


def test_versions_are_those_that_the_outputs_were_checked_with(made):
    place, _ = made
    pins = read_list((ROOT / "requirements/learn.txt").read_text())
    command = "".join(json.loads((place / LESSON).read_text())["cells"][1]["source"])
    for name in _PINNED:
        assert f'"{name}=={pins[name].version}"' in command


def test_without_an_address_the_package_is_asked_for_by_version(tmp_path):
    bundle_colab(out=tmp_path / "colab")
    assert 'no-deps "traceonce==' in (tmp_path / "colab" / LESSON).read_text().replace('\\"', '"')
    with pytest.raises(UsageError, match="is there already"):
        bundle_colab(out=tmp_path / "colab")


def test_the_package_is_installed_alone():
    first, second = install_command("traceonce==1", {"jax": "2"}).splitlines()
    assert ("--no-deps" in first, "--no-deps" in second) == (True, False)
