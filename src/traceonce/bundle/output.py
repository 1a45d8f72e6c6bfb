"""Files and folders that are there whole or not at all, and that take the place of nothing unless that was asked for."""

import contextlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from traceonce.errors import TraceOnceError, UsageError

_EARLIEST = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100000


@dataclass(frozen=True)
class Part:
    """One file of a bundle: its content, and its rights."""

    content: bytes
    mode: int = 0o644

    @classmethod
    def of(cls, path: Path) -> "Part":
        """A file of the disk; whoever may run it there may run it in the bundle."""
        return cls(path.read_bytes(), 0o755 if os.access(path, os.X_OK) else 0o644)

    @classmethod
    def text(cls, text: str, mode: int = 0o644) -> "Part":
        """A text."""
        return cls(text.encode("utf-8"), mode)


type Parts = Mapping[str, Part]
"""The files of a bundle, by their place in it."""


def refuse_existing(out: Path, *, force: bool) -> None:
    """**Raises**: `UsageError` where something lies at `out`, and it was not said that it may be replaced."""
    if os.path.lexists(out) and not force:
        raise UsageError(f"{out} is there already: choose another --out, or say --force to replace it.")


def refuse_as_file(out: Path, *, force: bool) -> None:
    """The same for a file. **Raises**: `UsageError` for a folder as well, which is never replaced by a file."""
    if out.is_dir():
        raise UsageError(f"{out} is a folder: give --out the name of a file, such as {out / 'bundle.zip'}.")
    refuse_existing(out, force=force)


def write_zip(out: Path, parts: Parts, *, force: bool) -> None:
    """Write an archive. The same parts give the same bytes: times are fixed and names are sorted.

    **Raises**: `UsageError` for a place that is taken or is a folder; `TraceOnceError` where it cannot be written.
    """
    refuse_as_file(out, force=force)
    with _sentences(out), _beside(out) as part:
        with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, found in sorted(parts.items()):
                about = zipfile.ZipInfo(name, _EARLIEST)
                about.compress_type = zipfile.ZIP_DEFLATED
                about.external_attr = (_REGULAR_FILE | found.mode) << 16
                archive.writestr(about, found.content)
        with open(part, "rb") as file:
            os.fsync(file.fileno())
        _put(part, out, force=force)


def write_folder(out: Path, parts: Parts, *, force: bool, keep: frozenset[str] = frozenset()) -> None:
    """Write a folder of files.

    A new folder appears whole. With `force` the parts are put into a folder that is there, each whole or not at all;
    everything else in it stays, and so do the parts named in `keep` where it has them.

    **Raises**: as `write_zip`.
    """
    refuse_existing(out, force=force)
    if os.path.lexists(out) and not out.is_dir():
        raise UsageError(f"{out} is not a folder: choose another --out.")
    with _sentences(out):
        if not out.exists():
            out.parent.mkdir(parents=True, exist_ok=True)
            whole = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
            try:
                for name, found in parts.items():
                    _write(whole / name, found)
                whole.chmod(0o755)
                whole.rename(out)
            except BaseException:
                shutil.rmtree(whole)
                raise
            return
        for name, found in parts.items():
            if name in keep and (out / name).exists():
                continue
            place = out / name
            place.parent.mkdir(parents=True, exist_ok=True)
            with _beside(place) as part:
                _write(part, found)
                os.replace(part, place)


def _write(path: Path, found: Part) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        os.fchmod(file.fileno(), found.mode)
        file.write(found.content)
        file.flush()
        os.fsync(file.fileno())


def _put(part: Path, out: Path, *, force: bool) -> None:
    """Move a finished file to its place; a link, unlike a rename, refuses where somebody was there first."""
    part.chmod(0o644)
    if force:
        os.replace(part, out)
        return
    try:
        os.link(part, out)
    except FileExistsError:
        refuse_existing(out, force=force)


@contextlib.contextmanager
def _beside(out: Path) -> Iterator[Path]:
    """A place for an unfinished file in the folder of the finished one; whatever is left there goes at the end."""
    out.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=out.parent, prefix=f".{out.name}.")
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextlib.contextmanager
def _sentences(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TraceOnceError(
            f"{out} cannot be written ({error.strerror or error}): make room, or choose another --out."
        ) from error
