"""JupyterLab in this process, for one desk, with nothing of the user's own Jupyter in it.

JupyterLab runs in the process that was started, so that there is one process to stop and nothing that outlives it.
All that Jupyter, its extensions and the kernels print goes to a log file; the terminal carries only sentences for the
person who sits at it.
"""

import errno
import os
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote

from traceonce.errors import TraceOnceError, UsageError

DEFAULT_PORT = 8888
_PORTS_TO_TRY = 50
_STOP_SECONDS = 10.0
# Variables that lead Jupyter to the user's own files; kernels get them back as they were.
_JUPYTER_VARIABLES = (
    "JUPYTER_CONFIG_DIR",
    "JUPYTER_CONFIG_PATH",
    "JUPYTER_DATA_DIR",
    "JUPYTER_NO_CONFIG",
    "JUPYTER_PATH",
    "JUPYTER_PREFER_ENV_PATH",
    "JUPYTER_RUNTIME_DIR",
    "JUPYTERLAB_SETTINGS_DIR",
    "JUPYTERLAB_WORKSPACES_DIR",
)


@dataclass(frozen=True)
class Place:
    """What is served.

    **Arguments**

    - `root`: the folder that the file browser shows; nothing above it can be reached.
    - `state`: the folder for settings, keys and the log.
    - `start`: the notebook to open, relative to `root`, with `/` between folders.
    - `authoring`: pair notebooks with Jupytext and open `.py` files as notebooks.
    """

    root: Path
    state: Path
    start: str
    authoring: bool

    @property
    def log(self) -> Path:
        return self.state / "jupyter.log"


def choose_port(host: str, asked: int | None) -> int:
    """A port that is free now: the one asked for, any free one for 0, or the first free one from the default on.

    **Raises** `TraceOnceError` if the port asked for is taken or not permitted, `UsageError` for a host that is not
    an address of this machine.
    """
    if asked is not None:
        if (obstacle := _obstacle(host, asked)) is not None:
            raise TraceOnceError(f"Port {asked} {obstacle}: choose another one with PORT=, or leave PORT out.")
        return asked if asked else _free_port(host)
    for port in range(DEFAULT_PORT, DEFAULT_PORT + _PORTS_TO_TRY):
        if _obstacle(host, port) is None:
            return port
    return _free_port(host)


def _obstacle(host: str, port: int) -> str | None:
    try:
        _try_port(host, port)
    except PermissionError:
        return "needs more rights than you have"
    except socket.gaierror as error:
        raise _not_here(host) from error
    except OSError as error:
        if error.errno == errno.EADDRNOTAVAIL:
            raise _not_here(host) from error
        return "is taken"
    return None


def _not_here(host: str) -> UsageError:
    return UsageError(f"'{host}' is not an address of this machine: use 127.0.0.1, or 0.0.0.0 for all of them.")


def _free_port(host: str) -> int:
    return _try_port(host, 0)


def _try_port(host: str, port: int) -> int:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the server itself does; without it a port that was in use a moment ago counts as taken.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind((host, port))
        return int(probe.getsockname()[1])


def serve(place: Place, *, host: str, port: int, ready: Callable[[str, TextIO], None]) -> None:
    """Serve until a signal ends it: Ctrl-C, a polite kill, or a terminal that goes away.

    `ready(address, terminal)` is called once the server answers; `address` holds the token that lets a browser in.

    **Raises** `TraceOnceError` if JupyterLab does not start.
    """
    place.state.mkdir(parents=True, exist_ok=True)
    with _jupyter_apart(place.state), _output_to(place.log) as terminal:
        try:
            app = _application(place, host, port)
        except SystemExit as error:
            raise TraceOnceError(f"JupyterLab did not start: {place.log} says why.") from error
        _stop_on_signals(app, place.state)
        token = app.identity_provider.token
        shown_host = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
        address = f"http://{shown_host}:{app.port}/lab/tree/{quote(place.start)}" + (f"?token={token}" if token else "")
        app.io_loop.add_callback(ready, address, terminal)
        try:
            app.start()
        finally:
            _end_kernels(place.state)


def _application(place: Place, host: str, port: int) -> Any:
    # Imported here: the paths to Jupyter's files are settled when its modules are imported.
    with _unavailable("rfc3987_syntax"):
        from jupyter_server.serverapp import ServerApp
    from traitlets.config import Config

    config = Config()
    config.ServerApp.ip = host
    config.ServerApp.port = port
    config.ServerApp.port_retries = 0
    config.ServerApp.open_browser = False
    config.ServerApp.root_dir = str(place.root)
    # The desk binds to this machine alone unless asked, and in a container root is the usual user.
    config.ServerApp.allow_root = True
    config.ServerApp.session_manager_class = _session_manager()
    config.KernelSpecManager.allowed_kernelspecs = {"python3"}
    config.LabApp.default_url = f"/lab/tree/{quote(place.start)}"
    config.LabApp.app_settings_dir = str(place.state / "settings")
    config.LabApp.user_settings_dir = str(place.state / "user-settings")
    config.LabApp.workspaces_dir = str(place.state / "workspaces")
    config.LabApp.labextensions_path = [str(Path(sys.prefix, "share", "jupyter", "labextensions"))]
    config.LabApp.extra_labextensions_path = []
    config.LabApp.extension_manager = "readonly"
    config.LabApp.news_url = None
    config.LabApp.check_for_updates_class = "jupyterlab.NeverCheckForUpdate"
    # Only what a desk uses, whatever else is installed: each server extension costs part of a second at the start.
    extensions = {"jupyterlab": True, "jupyter_server_terminals": True, "jupyterlab_jupytext": place.authoring}
    app = ServerApp.instance(config=config, jpserver_extensions=extensions)
    app.initialize(argv=[], find_extensions=False, starter_extension="lab")
    return app


@contextmanager
def _unavailable(module: str) -> Iterator[None]:
    """Let imports of an optional module fail.

    jsonschema imports rfc3987_syntax where it is installed, to check addresses with letters beyond ASCII, and that
    module compiles grammars for two seconds. Nothing in a Jupyter server asks for that check.
    """
    sys.modules[module] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        del sys.modules[module]


def _session_manager() -> type:
    from jupyter_server.services.sessions.sessionmanager import SessionManager

    class DeskSessionManager(SessionManager):  # type: ignore[misc]
        """Starts kernels in the environment of the person, not in that of the desk's Jupyter."""

        def get_kernel_env(self, path: str | None, name: Any = None) -> dict[str, str]:
            environment: dict[str, str] = super().get_kernel_env(path, name)
            for variable in _JUPYTER_VARIABLES:
                environment.pop(variable, None)
            return environment | _outside

    return DeskSessionManager


_outside: dict[str, str] = {}
"""Jupyter's variables as they were before the desk set its own."""


@contextmanager
def _jupyter_apart(state: Path) -> Iterator[None]:
    """Keep Jupyter's files inside `state`, and the user's own configuration, kernels and extensions out of it."""
    _outside.update({name: os.environ.pop(name) for name in _JUPYTER_VARIABLES if name in os.environ})
    os.environ["JUPYTER_NO_CONFIG"] = "1"
    os.environ["JUPYTER_DATA_DIR"] = str(state / "jupyter")
    os.environ["JUPYTER_RUNTIME_DIR"] = _runtime(state)
    try:
        yield
    finally:
        from jupyter_core.paths import jupyter_config_dir

        # Without configuration Jupyter makes itself an empty folder for it, and leaves it behind.
        shutil.rmtree(jupyter_config_dir(), ignore_errors=True)
        for name in _JUPYTER_VARIABLES:
            os.environ.pop(name, None)
        os.environ.update(_outside)
        _outside.clear()


def _runtime(state: Path) -> str:
    return str(state / "jupyter" / "runtime")


@contextmanager
def _output_to(log: Path) -> Iterator[TextIO]:
    """Send the output of this process and its children to `log`; yields what still reaches the terminal."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    with open(log, "w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    try:
        with open(kept[0], "w", buffering=1, closefd=False) as terminal:
            yield terminal
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for descriptor, copy in enumerate(kept, start=1):
            os.dup2(copy, descriptor)
            os.close(copy)


def _stop_on_signals(app: Any, state: Path) -> None:
    def stop(number: int, frame: Any) -> None:
        # A second signal of the same kind ends the process at once; its kernels notice within a second.
        signal.signal(number, signal.SIG_DFL)
        app.stop(from_signal=True)
        # Jupyter waits without end for a kernel that was still starting.
        app.io_loop.add_callback_from_signal(app.io_loop.call_later, _STOP_SECONDS, app.io_loop.stop)
        # A loop that is stopped so leaves a worker thread of anyio waiting, and Python waits for it at its exit, without end.
        last = threading.Timer(_STOP_SECONDS + 2, _end_at_once, [state])
        last.daemon = True
        last.start()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue  # started under nohup: meant to outlive its terminal
        signal.signal(number, stop)


def _end_at_once(state: Path) -> None:
    """End a server that a signal did not end, and its kernels."""
    print("The server did not end by itself, and was ended.", file=sys.stderr, flush=True)
    _end_kernels(state)
    os._exit(0)


def _end_kernels(state: Path) -> None:
    """Kill kernels that did not end by themselves; nothing to do after an orderly stop."""
    import psutil

    runtime = _runtime(state)
    for child in psutil.Process().children(recursive=True):
        # Told apart by their connection file: a browser that was opened may be a child as well, and stays.
        with suppress(psutil.Error):
            if any(runtime in argument for argument in child.cmdline()):
                child.kill()
