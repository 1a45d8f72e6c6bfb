"""`traceonce learn` as a process: what it prints, what it serves, what it leaves behind."""

import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import psutil
import pytest
from lab_browser import RunningDesk, code_notebook, write_checkout

from traceonce.desk import copies, layout, server, session
from traceonce.errors import TraceOnceError, UsageError

LESSON = "01_first/01_first.ipynb"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home whose owner has a JupyterLab set up in ways that would disturb a desk."""
    home = tmp_path_factory.mktemp("home")
    (home / ".jupyter" / "labconfig").mkdir(parents=True)
    (home / ".jupyter" / "jupyter_server_config.py").write_text(
        "raise SystemExit('the configuration of another JupyterLab was read')\n"
    )
    page = {"disabledExtensions": {"@jupyterlab/notebook-extension": True}}
    (home / ".jupyter" / "labconfig" / "page_config.json").write_text(json.dumps(page))
    return home


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkout(tmp_path_factory.mktemp("checkout"), {LESSON: code_notebook("1 + 1")})


@pytest.fixture(scope="module")
def desk(checkout: Path, home: Path) -> Iterator[RunningDesk]:
    running = RunningDesk(checkout, environment={"HOME": str(home), "JUPYTER_PATH": "/of/the/learner"})
    yield running
    running.kill()


def ask(desk: RunningDesk, path: str, *, token: bool = True, data: Any = None) -> Any:
    request = urllib.request.Request(desk.base + path, data=None if data is None else json.dumps(data).encode())
    if token:
        request.add_header("Authorization", f"token {desk.token.removeprefix('token=')}")
    with urllib.request.urlopen(request, timeout=30) as answer:
        body = answer.read()
    return json.loads(body) if "/api/" in path else body.decode()


def learn(*arguments: str, cwd: Path, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "traceonce", "learn", "--no-open", *arguments]
    return subprocess.run(
        command, cwd=cwd, env=os.environ | (environment or {}), capture_output=True, text=True, timeout=60, check=False
    )


# --- a desk that serves ---


def test_address_stands_on_a_line_of_its_own_and_answers(desk: RunningDesk) -> None:
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/lab/tree/index\.ipynb\?token=[0-9a-f]+", desk.address)
    assert desk.output[:2] == ["Made your desk in work/, with 2 files.", "Trace Once is ready at this address:"]
    assert "JupyterLab" in ask(desk, "/lab/tree/index.ipynb")


def test_nobody_gets_in_without_the_token(desk: RunningDesk) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(desk, "/api/contents/index.ipynb", token=False)
    assert refused.value.code == 403


def test_file_browser_shows_the_desk_alone(desk: RunningDesk) -> None:
    listed = ask(desk, "/api/contents/")
    assert {entry["name"] for entry in listed["content"]} == {"index.ipynb", "01_first"}


def test_only_the_extensions_of_a_desk_are_loaded(desk: RunningDesk) -> None:
    log = (desk.checkout / "work" / copies.STATE / "jupyter.log").read_text()
    loaded = set(re.findall(r"(\S+) \| extension was successfully loaded", log))
    assert loaded == {"jupyterlab", "jupyter_server_terminals"}


def test_settings_of_a_desk_reach_the_front_end(desk: RunningDesk) -> None:
    for plugin, wanted in layout.overrides(authoring=False).items():
        if plugin == "@jupyterlab/extensionmanager-extension:plugin":
            continue  # disabled as a whole, below
        schema = ask(desk, f"/lab/api/settings/{plugin}")["schema"]
        assert {key: schema["properties"][key]["default"] for key in wanted} == wanted
    page = json.loads(re.search(r'id="jupyter-config-data"[^>]*>(.*?)</script>', ask(desk, "/lab"), re.DOTALL)[1])  # type: ignore[index]
    assert set(page["disabledExtensions"]) == set(layout.disabled_extensions(authoring=False))


def test_second_start_names_the_running_one(desk: RunningDesk, checkout: Path) -> None:
    again = learn(cwd=checkout)
    assert again.returncode == 0
    assert again.stdout.splitlines() == [
        f"work/ is open already (process {desk.process.pid}), at this address:",
        desk.address,
    ]


def test_kernels_see_the_learners_environment_and_not_the_desks(desk: RunningDesk) -> None:
    started = ask(
        desk, "/api/sessions", data={"path": LESSON, "type": "notebook", "name": "", "kernel": {"name": "python3"}}
    )
    assert started["kernel"]["name"] == "python3"
    environment = kernels_of(desk.process.pid)[0].environ()
    assert environment["JUPYTER_PATH"] == "/of/the/learner"
    assert "JUPYTER_NO_CONFIG" not in environment
    assert "JUPYTER_DATA_DIR" not in environment


def test_stopping_leaves_no_kernel_no_address_and_the_users_jupyter_as_it_was(desk: RunningDesk, home: Path) -> None:
    ask(desk, "/api/kernels", data={"name": "python3"})
    kernels = kernels_of(desk.process.pid)
    assert kernels
    assert desk.stop() == 0
    wait_for_end(kernels)
    state = desk.checkout / "work" / copies.STATE
    assert not (state / "address.json").exists()
    assert {path.relative_to(home).as_posix() for path in home.rglob("*") if "upyter" in path.name} == {
        ".jupyter",
        ".jupyter/jupyter_server_config.py",
    }


def kernels_of(process: int) -> list[psutil.Process]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        found = [
            child
            for child in psutil.Process(process).children()
            if any("ipykernel" in part for part in child.cmdline())
        ]
        if found:
            return found
        time.sleep(0.1)
    return []


def wait_for_end(processes: list[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(processes, timeout=30)
    assert alive == []


@pytest.mark.parametrize(
    "ending", [signal.SIGHUP, signal.SIGTERM, signal.SIGKILL], ids=["lost terminal", "terminated", "killed"]
)
def test_no_kernel_outlives_a_desk(ending: signal.Signals, tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path, {LESSON: code_notebook("1 + 1")})
    desk = RunningDesk(checkout)
    try:
        ask(desk, "/api/kernels", data={"name": "python3"})
        kernels = kernels_of(desk.process.pid)
        assert kernels
        assert desk.stop(ending) == (-9 if ending is signal.SIGKILL else 0)
        wait_for_end(kernels)
    finally:
        desk.kill()


def test_desk_of_a_killed_start_opens_again(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path, {LESSON: code_notebook("1 + 1")})
    first = RunningDesk(checkout)
    first.kill()
    second = RunningDesk(checkout)
    assert second.stop() == 0
    assert second.address != first.address


# --- what stands in the way ---


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        yield holder.getsockname()[1]


def test_port_asked_for_and_taken_is_a_sentence(taken: int, checkout: Path, tmp_path: Path) -> None:
    refused = learn("--port", str(taken), "--desk", str(tmp_path / "desk"), cwd=checkout)
    assert refused.returncode == 3
    assert refused.stderr == f"traceonce: Port {taken} is taken: choose another one with PORT=, or leave PORT out.\n"


def test_default_port_moves_on_when_taken(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "DEFAULT_PORT", taken)
    assert taken < server.choose_port("127.0.0.1", None) < taken + server._PORTS_TO_TRY


def test_port_zero_takes_a_free_one() -> None:
    assert server.choose_port("127.0.0.1", 0) > 0


def test_port_that_needs_more_rights_is_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(host: str, port: int) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(server, "_try_port", refuse)
    with pytest.raises(TraceOnceError, match="Port 80 needs more rights than you have: choose another"):
        server.choose_port("127.0.0.1", 80)


@pytest.mark.parametrize("host", ["203.0.113.7", "no such host"])
def test_host_of_another_machine_is_a_sentence(host: str) -> None:
    with pytest.raises(UsageError, match="is not an address of this machine"):
        server.choose_port(host, 0)


def test_desk_that_is_a_file_is_a_sentence(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "desk").write_text("")
    refused = learn("--desk", str(tmp_path / "desk"), cwd=checkout)
    assert refused.returncode == 3
    assert re.fullmatch(
        r"traceonce: The desk .*/desk cannot be written \(.*\): mend that, or choose another .*\n", refused.stderr
    )


@pytest.mark.parametrize("folder", [".", "course", "labs/mine", "solutions"])
def test_desk_in_the_course_itself_is_refused(folder: str, tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path, {LESSON: code_notebook("1 + 1")}, {"lab01_first.ipynb": code_notebook("2")})
    before = {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()}
    refused = learn("--desk", folder, cwd=checkout)
    assert refused.returncode == 2
    assert "belongs to the course itself" in refused.stderr
    assert {path: path.read_bytes() for path in checkout.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.EACCES, "The desk /desk cannot be written (/desk/x: Permission denied): mend that"),
        (errno.EROFS, "The desk /desk cannot be written (/desk/x: Read-only file system): mend that"),
        (errno.ENOSPC, "There is no space left for /desk: free some"),
    ],
)
def test_refusals_of_the_file_system_are_sentences(number: int, sentence: str) -> None:
    with pytest.raises(TraceOnceError, match=re.escape(sentence)), session._sentences_for_files(Path("/desk")):
        raise OSError(number, os.strerror(number), "/desk/x")


def test_other_errors_keep_their_traceback() -> None:
    with pytest.raises(OSError, match="Input/output error"), session._sentences_for_files(Path("/desk")):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


# --- what a learner is told ---


def test_account_names_what_was_kept_and_what_lies_beside_it(tmp_path: Path) -> None:
    place = PurePosixPath(LESSON)
    done = copies.Refreshed(
        made=(copies.INDEX,), renewed=(place,), offered=((place, place.with_name("01_first.new.ipynb")),)
    )
    assert list(session.account(done, tmp_path, new=False)) == [
        "index.ipynb was not on your desk: laid a fresh copy there.",
        f"The course has changed: renewed what you had not touched ({LESSON}).",
        f"{LESSON} has changed in the course and on your desk: yours is kept, the new one is 01_first.new.ipynb beside it.",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a browser always has a screen")
@pytest.mark.parametrize(("variable", "expected"), [("DISPLAY", True), ("WAYLAND_DISPLAY", True), ("OTHER", False)])
def test_no_text_browser_takes_over_a_terminal_without_a_screen(
    variable: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, ":0")
    assert session._has_screen() is expected


def test_settings_for_authors_open_sources_as_notebooks_and_store_no_widget_bulk() -> None:
    authoring = layout.overrides(authoring=True)
    assert authoring["@jupyterlab/docmanager-extension:plugin"]["defaultViewers"]["python"] == "Jupytext Notebook"
    assert authoring["@jupyter-widgets/jupyterlab-manager:plugin"]["saveState"] is False
    assert "jupyterlab-jupytext" not in layout.disabled_extensions(authoring=True)


def files_but_state(checkout: Path) -> set[str]:
    return {str(path) for path in checkout.rglob("*") if path.is_file() and ".author" not in path.parts}


def test_authors_serve_the_checkout_itself_with_pairing(tmp_path: Path) -> None:
    checkout = write_checkout(tmp_path, {LESSON: code_notebook("1 + 1")})
    (checkout / "course" / "01_first" / "01_first.py").write_text("# %%\n1 + 1\n")
    before = files_but_state(checkout)
    desk = RunningDesk(checkout, "--author")
    try:
        assert "/lab/tree/course/index.ipynb" in desk.address
        opened = ask(desk, "/api/contents/course/01_first/01_first.py?type=notebook&content=1")
        assert [cell["source"] for cell in opened["content"]["cells"]] == ["1 + 1"]
    finally:
        desk.stop()
        desk.kill()
    assert files_but_state(checkout) == before


LINGERING = """
import os, signal, sys, time
from pathlib import Path
from types import SimpleNamespace
from traceonce.desk import server

server._STOP_SECONDS = -1.5
nothing = lambda *_, **__: None
server._stop_on_signals(SimpleNamespace(stop=nothing, io_loop=SimpleNamespace(
    add_callback_from_signal=nothing, call_later=nothing, stop=nothing)), Path(sys.argv[1]))
os.kill(os.getpid(), signal.SIGINT)
time.sleep(60)
"""


def test_a_server_that_does_not_end_by_itself_is_ended_all_the_same(tmp_path):
    ran = subprocess.run([sys.executable, "-c", LINGERING, str(tmp_path)], capture_output=True, text=True, timeout=50)
    assert ran.returncode == 0
    assert ran.stderr == "The server did not end by itself, and was ended.\n"
