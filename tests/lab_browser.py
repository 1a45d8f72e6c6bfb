"""A desk that serves and a Chromium that looks at it, for every test that needs a real front end.

Fixtures (see `tests/conftest.py`):

- `chromium`: one headless browser for the whole run; skips with a reason where there is none.
- `desk_of`: `desk_of({"demo.ipynb": notebook})` serves these notebooks from a desk of their own with `traceonce learn`.
- `lab`: `lab(desk, "demo.ipynb")` opens one of them in JupyterLab and returns a `LabPage`.

    @pytest.mark.browser
    def test_chart_moves(desk_of, lab):
        page = lab(desk_of({"demo.ipynb": code_notebook("from traceonce import watch", ...)}), "demo.ipynb")
        page.run_all()
        page.wait_for_prompt(1, "[*]:")
        page.screenshot("chart-in-mid-run")
        page.wait_until_done()
        assert page.errors() == []
"""

import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--no-first-run",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
)
START_SECONDS = 120
STOP_SECONDS = 60


def markdown_cell(text: str) -> dict[str, Any]:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def code_cell(source: str) -> dict[str, Any]:
    cell = {"cell_type": "code", "metadata": {}, "source": source}
    return cell | {"execution_count": None, "outputs": []}


def notebook(*cells: dict[str, Any]) -> dict[str, Any]:
    """A notebook of these cells that runs on the environment's own kernel."""
    numbered = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    kernel = {"name": "python3", "display_name": "Python 3 (ipykernel)", "language": "python"}
    return {"cells": numbered, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}


def code_notebook(*sources: str) -> dict[str, Any]:
    return notebook(*map(code_cell, sources))


def write_checkout(folder: Path, course: Mapping[str, Any], labs: Mapping[str, Any] | None = None) -> Path:
    """A folder that `traceonce learn` takes for a checkout, with these notebooks in `course/` and `labs/`."""
    (folder / "src" / "traceonce").mkdir(parents=True, exist_ok=True)
    course = {"index.ipynb": notebook(markdown_cell("# Index"))} | dict(course)
    for top, files in (("course", course), ("labs", labs or {})):
        for name, content in files.items():
            path = folder / top / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
    return folder


class RunningDesk:
    """A `traceonce learn` that has printed its address.

    **Arguments**

    - `checkout`: the folder it runs in.
    - `arguments`: more of its command line.
    """

    def __init__(self, checkout: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        self.checkout = checkout
        self.output: list[str] = []
        command = [sys.executable, "-m", "traceonce", "learn", "--no-open", *arguments]
        if "--port" not in arguments:
            command += ["--port", "0"]
        self.process = subprocess.Popen(
            command,
            cwd=checkout,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.address = self._read_address()
        parts = urlsplit(self.address)
        self.base = f"{parts.scheme}://{parts.netloc}"
        self.token = parts.query

    def _read_address(self) -> str:
        lines: queue.Queue[str | None] = queue.Queue()

        def read() -> None:
            assert self.process.stdout is not None
            for line in self.process.stdout:
                lines.put(line.rstrip("\n"))
            lines.put(None)

        threading.Thread(target=read, daemon=True).start()
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                line = lines.get(timeout=max(0.1, deadline - time.monotonic()))
            except queue.Empty:
                self.kill()
                raise AssertionError(f"no address after {START_SECONDS} s; it printed: {self.output}") from None
            if line is None:
                raise AssertionError(f"it ended with {self.process.wait()} and printed: {self.output}")
            self.output.append(line)
            if line.startswith("http://"):
                return line

    def url(self, name: str) -> str:
        return f"{self.base}/lab/tree/{quote(name)}?{self.token}"

    def stop(self, number: int = signal.SIGINT) -> int:
        """End it as Ctrl-C does; returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(STOP_SECONDS)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class LabPage:
    """One notebook open in JupyterLab; what a person does there and sees there."""

    def __init__(self, page: Any, pictures: Path) -> None:
        self.page = page
        self.pictures = pictures
        self.complaints: list[str] = []  # what went to the browser's console as an error
        page.on("console", lambda said: self.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))

    @property
    def panel(self) -> Any:
        """The notebook in front."""
        return self.page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")

    def open(self, desk: RunningDesk, name: str) -> None:
        self.page.goto(desk.url(name))
        self.panel.locator(".jp-Cell").first.wait_for(timeout=60_000)
        self.panel.locator(".jp-Spinner").wait_for(state="detached", timeout=60_000)
        self.wait_for_kernel()

    def wait_for_kernel(self) -> None:
        """Until the notebook in front has a kernel that listens: a cell that is run earlier is not run at all.

        The status bar says so; the indicator at the top of the notebook reads idle before there is a kernel.
        """
        self.page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=120_000)

    def menu(self, *path: str) -> None:
        """Choose an entry of the main menu by its texts, as `menu("Run", "Run All Cells")`."""
        self.page.locator(".lm-MenuBar-itemLabel", has_text=path[0]).first.click()
        for name in path[1:]:
            entry = self.page.locator(".lm-Menu-itemLabel").get_by_text(name, exact=True)
            entry.last.click()

    def run_all(self) -> None:
        self.menu("Run", "Run All Cells")

    def prompts(self) -> list[str]:
        """The text before each code cell: `[ ]:`, `[*]:` or `[3]:`."""
        return [text.strip() for text in self.panel.locator(".jp-CodeCell .jp-InputPrompt").all_text_contents()]

    def wait_for_prompt(self, index: int, text: str, *, seconds: float = 60) -> None:
        self._wait(lambda: self.prompts()[index : index + 1] == [text], f"prompt {index} to become {text}", seconds)

    def wait_until_done(self, *, seconds: float = 120) -> None:
        """Until every code cell has run. JupyterLab's kernel status can read idle in mid-cell, so this reads the prompts."""

        def done() -> bool:
            prompts = self.prompts()
            return bool(prompts) and all(prompt.strip("[]:").isdigit() for prompt in prompts)

        self._wait(done, "all cells to have run", seconds)

    def outputs(self) -> list[str]:
        return [text.strip() for text in self.panel.locator(".jp-OutputArea-output").all_text_contents()]

    def errors(self) -> list[str]:
        """What was printed on stderr or raised."""
        kinds = ("application/vnd.jupyter.error", "application/vnd.jupyter.stderr")
        where = ", ".join(f'.jp-OutputArea-output[data-mime-type="{kind}"]' for kind in kinds)
        return [text.strip() for text in self.panel.locator(where).all_text_contents()]

    def type_into(self, index: int, text: str) -> None:
        """Append text to a cell as a person would."""
        self.panel.locator(".jp-Cell .cm-content").nth(index).click()
        self.page.keyboard.press("Control+End")
        self.page.keyboard.type(text)

    def save(self) -> None:
        self.page.keyboard.press("Control+s")
        self._wait(lambda: self.page.locator(".jp-mod-dirty").count() == 0, "the notebook to be saved", 30)

    def screenshot(self, name: str) -> Path:
        path = self.pictures / f"{name}.png"
        self.page.screenshot(path=str(path))
        return path

    def _wait(self, condition: Callable[[], bool], what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                picture = self.screenshot("gave-up-waiting")
                raise AssertionError(
                    f"waited {seconds} s for {what}; prompts {self.prompts()}, outputs {self.outputs()}; see {picture}"
                )
            self.page.wait_for_timeout(50)


def chromium_path() -> str | None:
    """The first Chromium on PATH."""
    return next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One headless Chromium."""
    path = chromium_path()
    if path is None:
        pytest.skip(f"no browser: none of {', '.join(CHROMIUM_NAMES)} is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(CHROMIUM_FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def desk_of(tmp_path: Path) -> Iterator[Callable[..., RunningDesk]]:
    """Serves notebooks given by name; every desk is stopped at the end of the test."""
    running: list[RunningDesk] = []

    def start(course: Mapping[str, Any], labs: Mapping[str, Any] | None = None, *arguments: str) -> RunningDesk:
        checkout = write_checkout(tmp_path / f"checkout{len(running)}", course, labs)
        running.append(RunningDesk(checkout, *arguments))
        return running[-1]

    yield start
    for desk in running:
        try:
            desk.stop()
        finally:
            desk.kill()


@pytest.fixture
def lab(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., LabPage]]:
    """Opens notebooks in JupyterLab. Pictures go to `$TRACEONCE_PICTURES`, else to the test's temporary folder."""
    pictures = Path(os.environ.get("TRACEONCE_PICTURES", tmp_path / "pictures"))
    pictures.mkdir(parents=True, exist_ok=True)
    contexts = []

    def open_page(desk: RunningDesk, name: str, **options: Any) -> LabPage:
        contexts.append(chromium.new_context(viewport={"width": 1280, "height": 800}, **options))
        page = LabPage(contexts[-1].new_page(), pictures)
        page.open(desk, name)
        return page

    yield open_page
    for context in contexts:
        context.close()
