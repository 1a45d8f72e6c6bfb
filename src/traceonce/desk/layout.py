"""How JupyterLab looks on a desk: the course at the left, nothing that asks, advertises or calls out.

These are defaults (`overrides.json`) and a page configuration in a folder that belongs to the desk. What a learner
changes in the settings editor is kept on the desk as well and wins over them; their JupyterLab elsewhere is not read
and not changed.
"""

import json
from pathlib import Path
from typing import Any

AUTOSAVE_SECONDS = 10
"""Ending the desk from the terminal saves nothing by itself, so this bounds what a learner can lose."""


def overrides(*, authoring: bool) -> dict[str, dict[str, Any]]:
    """Settings that differ from JupyterLab's own defaults, by plugin."""
    documents: dict[str, Any] = {"autosave": True, "autosaveInterval": AUTOSAVE_SECONDS, "maxNumberRecents": 0}
    if authoring:
        documents["defaultViewers"] = {"python": "Jupytext Notebook", "markdown": "Markdown Preview"}
    return {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/extensionmanager-extension:plugin": {"enabled": False},
        "@jupyterlab/docmanager-extension:plugin": documents,
        "@jupyterlab/filebrowser-extension:browser": {"showLastModifiedColumn": False, "sortNotebooksFirst": True},
        # Without the first, a cell that is run before its kernel listens is silently not run. With JupyterLab's own "full" windowing,
        # a link into a notebook that is not open yet ends at its top, because the cell it names is not drawn.
        "@jupyterlab/notebook-extension:tracker": {"enableKernelInitNotification": True, "windowingMode": "defer"},
        # A learner finds their charts as they left them; a committed notebook carries no widget bulk.
        "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": not authoring},
    }


def disabled_extensions(*, authoring: bool) -> list[str]:
    """Front-end extensions that are off on a desk, whatever else is installed in the environment."""
    off = [
        "@jupyterlab/apputils-extension:announcements",
        "@jupyterlab/extensionmanager-extension",
        # Language servers, and the two that ask for them: left on, they fail at each start and say so in the browser's console.
        "@jupyterlab/lsp-extension",
        "@jupyterlab/fileeditor-extension:language-server",
        "@jupyterlab/notebook-extension:language-server",
        # What the development environment brings along: a second interface, and buttons for courses run by nbgrader.
        "@jupyter-notebook/lab-extension",
        "@jupyter/nbgrader",
    ]
    return off if authoring else [*off, "jupyterlab-jupytext", "@jupyterlab/debugger-extension"]


def write(folder: Path, *, authoring: bool) -> None:
    """Write the settings that JupyterLab reads from its application settings folder."""
    folder.mkdir(parents=True, exist_ok=True)
    page = {"disabledExtensions": dict.fromkeys(disabled_extensions(authoring=authoring), True)}
    (folder / "overrides.json").write_text(json.dumps(overrides(authoring=authoring), indent=1))
    (folder / "page_config.json").write_text(json.dumps(page, indent=1))
