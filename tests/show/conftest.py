"""Every test here has a progress file of its own; tests that need Chromium carry the marker `browser`."""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import IPython
import IPython.display
import nbformat
import pytest

from traceonce.show import prediction

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: runs JupyterLab in a headless Chromium")


@pytest.fixture(autouse=True)
def progress_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "progress.json"
    monkeypatch.setenv("TRACEONCE_PROGRESS", str(path))
    monkeypatch.setattr(prediction, "_session", {})
    return path


class FakeEvents:
    """IPython's events, as far as a chart uses them."""

    def __init__(self) -> None:
        self.registered: list[Callable[[object], None]] = []

    def register(self, name: str, callback: Callable[[object], None]) -> None:
        assert name == "post_run_cell"
        self.registered.append(callback)

    def unregister(self, name: str, callback: Callable[[object], None]) -> None:
        self.registered.remove(callback)

    def end_of_cell(self) -> None:
        for callback in list(self.registered):
            callback(None)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Behave as in a kernel; `outputs` is what the notebook would get."""
    shell = SimpleNamespace(kernel=object(), execution_count=1, events=FakeEvents(), outputs=[])
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    monkeypatch.setattr(IPython.display, "publish_display_data", shell.outputs.append)
    return shell


SETTINGS = {
    "@jupyter-widgets/jupyterlab-manager/plugin": {"saveState": True},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "@jupyterlab/apputils-extension/themes": {"theme": "JupyterLab Light"},
}
# Not a learner's, and slow to import.
UNUSED = {
    f"nbgrader.server_extensions.{name}": False
    for name in ("assignment_list", "course_list", "formgrader", "validate_assignment")
}


@dataclass
class Desk:
    """A JupyterLab on a folder of its own, with one browser page on it."""

    folder: Path
    settings: Path
    address: str
    page: "Page"

    def open(self, name: str, sources: list[str], *, theme: str = "Light") -> None:
        """Write a notebook and open it in the theme `Light` or `Dark`."""
        self.use_theme(theme)
        metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
        cells = [nbformat.v4.new_code_cell(source) for source in sources]
        nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), self.folder / name)
        self.reopen(name)

    def use_theme(self, theme: str) -> None:
        write_settings(
            self.settings, SETTINGS | {"@jupyterlab/apputils-extension/themes": {"theme": f"JupyterLab {theme}"}}
        )

    def reopen(self, name: str) -> None:
        """Load the notebook's page, as a reload does, and wait until its kernel can run."""
        self.page.goto(f"{self.address}/lab/tree/{name}?token=show&reset", wait_until="domcontentloaded")
        self.page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=60_000)
        # The toolbar says idle before there is a kernel; the status bar names the kernel.
        self.page.locator("#jp-main-statusbar").filter(has_text="Python 3 (ipykernel) | Idle").wait_for(timeout=90_000)

    def cell(self, number: int) -> "Locator":
        return self.page.locator(".jp-Notebook .jp-CodeCell").nth(number)

    def run(self, number: int, *, wait: bool = True) -> None:
        """Run one cell; with `wait`, until its prompt shows another number than before."""
        before = self.prompt(number)
        deadline, pressed = time.monotonic() + 120, 0.0
        while time.monotonic() < deadline:
            prompt = self.prompt(number)
            if prompt not in (before, "[ ]:") and (not wait or "*" not in prompt):
                return
            # JupyterLab forgets a run that comes before its kernel is connected, whatever the status says by then.
            if prompt in (before, "[ ]:") and time.monotonic() - pressed > 5:
                self.cell(number).locator(".cm-content").click()
                self.page.keyboard.press("Control+Enter")
                pressed = time.monotonic()
            self.page.wait_for_timeout(50)
        raise AssertionError(f"cell {number} did not run: its prompt is {self.prompt(number)}")

    def prompt(self, number: int) -> str:
        return self.cell(number).locator(".jp-InputPrompt").inner_text()

    def wait_for(self, number: int) -> None:
        prompt = self.cell(number).locator(".jp-InputPrompt")
        prompt.filter(has_text=re.compile(r"\[\d+\]")).wait_for(timeout=60_000)

    def end_kernels(self) -> None:
        """Shut every kernel down, as a restarted server would find it."""
        headers = {"Authorization": "token show"}
        with urllib.request.urlopen(urllib.request.Request(f"{self.address}/api/sessions", headers=headers)) as reply:
            sessions = json.load(reply)
        self.page.goto("about:blank")
        for session in sessions:
            address = f"{self.address}/api/sessions/{session['id']}"
            urllib.request.urlopen(urllib.request.Request(address, headers=headers, method="DELETE")).close()

    def picture(self, name: str, number: int) -> None:
        """Keep a picture of the page, with a cell's output in sight, in `$TRACEONCE_PICTURES`; nothing without it."""
        if folder := os.environ.get("TRACEONCE_PICTURES"):
            self.cell(number).locator(".jp-OutputArea").first.scroll_into_view_if_needed()
            self.page.screenshot(path=str(Path(folder) / f"{name}.png"))

    def save(self) -> None:
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("Control+s")
        self.page.locator(".jp-mod-dirty").wait_for(state="detached", timeout=20_000)


def write_settings(folder: Path, settings: dict[str, dict[str, object]]) -> None:
    for name, values in settings.items():
        extension, _, plugin = name.rpartition("/")
        path = folder / extension / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))


@pytest.fixture(scope="session")
def jupyterlab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    """The address of a running JupyterLab, the folder that it serves, and its settings folder."""
    home = tmp_path_factory.mktemp("desk")
    folder = home / "work"
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = os.environ | {
        "TRACEONCE_PROGRESS": str(home / "progress.json"),
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
        "IPYTHONDIR": str(home / "ipython"),
    }
    write_settings(home / "settings", SETTINGS)
    (home / "config").mkdir()
    (home / "config" / "jupyter_server_config.json").write_text(
        json.dumps({"ServerApp": {"jpserver_extensions": UNUSED}})
    )
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--IdentityProvider.token=show"]
    command += [f"--port={port}", "--ServerApp.port_retries=0", f"--ServerApp.root_dir={folder}"]
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 180
            while not answers(f"{address}/api?token=show"):
                assert server.poll() is None, (home / "log").read_text()
                assert time.monotonic() < deadline, (home / "log").read_text()
                time.sleep(0.2)
            yield address, folder, home / "settings"
        finally:
            server.terminate()
            server.wait(timeout=20)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as reply:
            return reply.status == 200
    except OSError:
        return False


@pytest.fixture(scope="module")
def desk(jupyterlab: tuple[str, Path, Path], chromium: Any) -> Iterator[Desk]:
    """A browser page on JupyterLab, one for a module: opening it takes longer than all that is asked of it."""
    address, folder, settings = jupyterlab
    # The browser is everybody's, because Playwright allows one in a process; the context is this module's.
    context = chromium.new_context(viewport={"width": 1200, "height": 1000})
    opened = Desk(folder, settings, address, context.new_page())
    yield opened
    opened.end_kernels()
    context.close()
