"""The file system that sandboxed code sees: this Python environment, the system's libraries, and nothing else.

Everything stands at its usual path, so that modules which are imported later are found, and is read-only. There is no
shell, no home, no course, no output folder. Each child gets its own `SCRATCH` and `SHARED_MEMORY` to write to.
"""

import os
import stat
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from traceonce.sandbox import linux

_SYSTEM_LIBRARIES = ("/usr/lib", "/usr/lib64", "/usr/lib32", "/lib", "/lib64", "/lib32", "/etc/ld.so.cache")
SCRATCH = "/scratch"
"""Where a child may write. ``/tmp`` is a link to it, except where the environment itself lives below ``/tmp``."""

SHARED_MEMORY = "/dev/shm"

DEVICES = ("null", "zero", "full", "random", "urandom")
PASSWD = "student:x:1000:1000:student:/scratch:/nonexistent\n"


@dataclass(frozen=True)
class Contents:
    """What the root holds: `links` to recreate as they are, and folders or files to show (`shown`), parents first."""

    shown: tuple[Path, ...]
    links: tuple[tuple[Path, str], ...]


def environment_contents() -> Contents:
    """The paths that the running Python needs to import what it can import now.

    A folder on `sys.path` that is no part of the environment (the ``src`` of an editable install) is not shown: of it only
    the package ``traceonce`` is.
    """
    package = Path(__file__).resolve().parents[1]
    wanted = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    wanted += [Path(sys.base_prefix) / "lib", *(Path(entry) for entry in sys.path if _is_packages(entry))]
    wanted += [package, *(Path(name) for name in _SYSTEM_LIBRARIES)]
    shown: set[Path] = set()
    links: set[tuple[Path, str]] = set()
    for path in wanted:
        if path.is_symlink() and str(path) in _SYSTEM_LIBRARIES:
            links.add((path, os.readlink(path)))
        elif path.exists():
            shown.add(path)
            shown.add(path.resolve())
    outer = [path for path in shown if not any(other != path and path.is_relative_to(other) for other in shown)]
    return Contents(tuple(sorted(outer)), tuple(sorted(links)))


def _is_packages(entry: str) -> bool:
    """Whether a `sys.path` entry is a folder that an installer fills."""
    return Path(entry).name in ("site-packages", "dist-packages", "lib-dynload")


def enter_root(contents: Contents, extra: Mapping[Path, Path]) -> None:
    """Build the root in a fresh tmpfs and move into it. Needs a mount namespace of one's own and its capabilities.

    `extra` are folders to show elsewhere than at their own path: by the path inside, the path outside.

    ``/proc`` is still the one from outside: a child replaces it by its own, and the kernel allows that only where a full
    one is already mounted.

    **Raises**: `OSError` where the kernel refuses a mount.
    """
    linux.mount(None, "/", None, linux.MS_REC | linux.MS_PRIVATE)
    # Paths are opened before the tmpfs covers the folder that it is mounted on; a descriptor still reaches them.
    sources = [(path, _open_path(path)) for path in contents.shown]
    sources += [(inside, _open_path(outside)) for inside, outside in extra.items()]
    devices = [(Path("/dev") / name, _open_path(f"/dev/{name}")) for name in DEVICES]
    proc = _open_path("/proc")
    new = Path(tempfile.gettempdir()).resolve()
    linux.mount("tmpfs", new, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=4m")
    os.chdir(new)
    for path, source in (*sources, *devices):
        _show(source, _inside(path))
    for path, target in contents.links:
        _inside(path).parent.mkdir(parents=True, exist_ok=True)
        _inside(path).symlink_to(target)
    for folder in (SCRATCH, SHARED_MEMORY, "/proc", "/etc"):
        _inside(Path(folder)).mkdir(parents=True, exist_ok=True)
    if not Path("tmp").exists():  # it exists where this environment lives below /tmp
        Path("tmp").symlink_to(SCRATCH)
    Path("etc/passwd").write_text(PASSWD)
    linux.restrict_mount(".")
    linux.mount(f"/proc/self/fd/{proc}", "proc", None, linux.MS_BIND | linux.MS_REC)
    linux.pivot_root(".")
    for descriptor in (proc, *(source for _, source in (*sources, *devices))):
        os.close(descriptor)
    tempfile.tempdir = SCRATCH  # what it keeps was found out in the file system that this process has left


def _open_path(path: str | Path) -> int:
    return os.open(path, os.O_PATH | os.O_CLOEXEC)


def _inside(path: Path) -> Path:
    """Where a path of the outside stands below the current folder, which becomes the root."""
    return path.relative_to("/")


def _show(source: int, target: Path) -> None:
    """Bind what a descriptor refers to at `target`, which is made to fit."""
    is_folder = stat.S_ISDIR(os.fstat(source).st_mode)
    if is_folder:
        target.mkdir(parents=True, exist_ok=True)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    linux.mount(f"/proc/self/fd/{source}", target, None, linux.MS_BIND | linux.MS_REC)
    if is_folder:
        linux.restrict_mount(target, nodev=True)
