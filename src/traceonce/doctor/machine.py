"""What the doctor may look at: files, environment, installed packages and child processes.

Every check takes a `Machine` and touches nothing else, so that a test can show it any machine: a folder in place of `/`,
a dictionary in place of the environment, a function in place of child processes.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePath

_GRACE = 2.0


@dataclass(frozen=True)
class Installed:
    """A distribution as it is installed.

    **Arguments**

    - `name`, `version`: as its metadata say.
    - `requires`: its requirements, one string each, such as `"jaxlib<=0.11.2,>=0.11.2"`.
    - `installed_at`: when an installer put it there; `None` where that cannot be known.
    """

    name: str
    version: str
    requires: tuple[str, ...] = ()
    installed_at: datetime | None = None


@dataclass(frozen=True)
class Ran:
    """How a child process ended.

    **Arguments**

    - `code`: its exit code, negative for a signal; `None` where it did not end in time.
    - `out`, `error`: what it printed.
    """

    code: int | None
    out: str = ""
    error: str = ""


@dataclass(frozen=True)
class Machine:
    """Everything that the checks look at.

    **Arguments**

    - `root`: the folder that stands for `/`.
    - `environ`: the environment variables.
    - `here`: the folder that the command was given in.
    - `python`: the version of Python, three numbers.
    - `system`: as in `sys.platform`.
    - `packages`: the folders that hold installed packages.
    - `installed`: looks a distribution up by name.
    - `run`: runs a command for at most so many seconds.
    - `now`: the time to reckon ages from.
    """

    root: Path = Path("/")
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    here: Path = field(default_factory=Path.cwd)
    python: tuple[int, int, int] = sys.version_info[:3]
    system: str = sys.platform
    packages: tuple[Path, ...] = field(default_factory=lambda: _package_folders())
    installed: Callable[[str], Installed | None] = field(default_factory=lambda: _installed)
    run: Callable[[Sequence[str], float, Mapping[str, str]], Ran] = field(default_factory=lambda: run_bounded)
    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def path(self, absolute: str | PurePath) -> Path:
        """Return where an absolute path of the examined machine lies."""
        return self.root / str(absolute).lstrip("/")

    def read(self, absolute: str | PurePath) -> str | None:
        """Return the text of a file, or `None` where it is not there or not for us."""
        try:
            return self.path(absolute).read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None

    def read_number(self, absolute: str | PurePath) -> int | None:
        """Return the integer in a file; `None` where there is none, as in `max`."""
        text = (self.read(absolute) or "").strip()
        return int(text) if re.fullmatch(r"-?\d+", text) else None


def _package_folders() -> tuple[Path, ...]:
    return tuple(Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages")))


def _installed(name: str) -> Installed | None:
    try:
        found = metadata.distribution(name)
    except metadata.PackageNotFoundError:
        return None
    # The installer writes RECORD; the other files keep the times of the wheel.
    record = next((entry for entry in found.files or () if entry.name == "RECORD"), None)
    try:
        when = None if record is None else datetime.fromtimestamp(Path(str(record.locate())).stat().st_mtime, UTC)
    except OSError:
        when = None
    return Installed(found.metadata["Name"], found.version, tuple(found.requires or ()), when)


def run_bounded(command: Sequence[str], seconds: float, environ: Mapping[str, str]) -> Ran:
    """Run a command and come back in time, whatever it does.

    A process that waits for a broken device driver cannot even be killed; it is left behind then. Its output goes to
    files, because a pipe would be waited for as long as any of its children lives.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=error,
                env=dict(environ),
                start_new_session=True,
            )
        except OSError as trouble:
            return Ran(127, "", str(trouble))
        code: int | None
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(child.pid, signal.SIGKILL)
            try:
                child.wait(_GRACE)
            except subprocess.TimeoutExpired:
                # Popen would warn at exit of a child that it thinks is running; it is, and nobody can end it.
                child.returncode = -signal.SIGKILL
        out.seek(0)
        error.seek(0)
        return Ran(code, out.read().decode(errors="replace"), error.read().decode(errors="replace"))
