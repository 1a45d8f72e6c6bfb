"""The lessons for Colab: each with one cell on top that installs the package. The course's own notebooks stay without it."""

import json
from importlib.metadata import version
from pathlib import Path

from traceonce.author.course import Course
from traceonce.author.notebooks import Json, digest, dumps, read_stored
from traceonce.bundle.gpu import read_list
from traceonce.bundle.output import Part, write_folder
from traceonce.errors import TraceOnceError
from traceonce.grade.lab import find_root

# What the lessons import beside the package. Of the rest, pip takes what these ask for and Colab has not.
_PINNED = ("jax", "jaxlib", "equinox", "optax", "anywidget", "platformdirs", "psutil", "typer", "rich")
_TEXT = "Run this cell first, once a session: it installs the course's tools, at the versions that the outputs below were checked with."
_README = """# The lessons for Colab

Put this folder where Colab opens notebooks from (a repository or a Drive), and the package where the first cell of each looks for it: `{package}`.
That cell installs it with JAX {jax} on the CPU; on a GPU runtime write `jax[cuda12]=={jax}` there. Links from one lesson to another work in a repository and
not in a Drive. What is done in a session is lost with it, unless the notebook is saved.
"""


def bundle_colab(*, out: Path, package: str | None = None, force: bool = False, root: Path | None = None) -> list[str]:
    """Make a folder of lessons and labs, each with an install cell on top; returns their names.

    **Arguments**

    - `package`: what pip is to install: `traceonce==0.1.0` by default, or the address of a wheel.

    **Raises**: `UsageError` for a place that is taken; `TraceOnceError` where a notebook is missing.
    """
    root = root or find_root()
    package = package or f"traceonce=={version('traceonce')}"
    pins = read_list((root / "requirements/learn.txt").read_text("utf-8"))
    command = install_command(package, {name: pins[name].version for name in _PINNED})
    parts = {}
    for pair in Course(root).pairs:
        path = pair.starter if pair.kind == "lab" else pair.notebook
        notebook = read_stored(root / path)
        if notebook is None:
            raise TraceOnceError(f"{root / path} is not there: run `traceonce author build`.")
        if pair.kind != "index":
            parts[path.as_posix()] = Part.text(dumps(with_install_cell(notebook, command)))
    names = sorted(parts)
    parts["README.md"] = Part.text(_README.format(package=package, jax=pins["jax"].version))
    write_folder(out, parts, force=force)
    return names


def install_command(package: str, versions: dict[str, str]) -> str:
    """The two lines that install: the package alone, because it also asks for a JupyterLab, and what lessons import."""
    pinned = " ".join(f'"{name}=={number}"' for name, number in versions.items())
    return f'%pip install --quiet --no-deps "{package}"\n%pip install --quiet {pinned}'


def with_install_cell(notebook: Json, command: str) -> Json:
    """The notebook with a text and the command in front."""
    text: Json = {"cell_type": "markdown", "id": digest(["text", command])[:8], "metadata": {}, "source": _TEXT}
    code: Json = {
        "cell_type": "code",
        "id": digest(["code", command])[:8],
        "metadata": {"tags": ["install"]},
        "source": command,
        "execution_count": None,
        "outputs": [],
    }
    whole: Json = json.loads(json.dumps(notebook))
    ours = whole["metadata"].get("traceonce", {})
    # What a build recorded belongs to the notebook without the cell; a lab's name stays, because grading reads it.
    whole["metadata"]["traceonce"] = {"lab": ours["lab"]} if "lab" in ours else {}
    return whole | {"cells": [text, code, *whole["cells"]]}
