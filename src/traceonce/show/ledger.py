"""The progress file: what was predicted, when, and what was then measured.

The file belongs to the learner. It is JSON, written whole under a lock and put in place by one rename, so that two
kernels never mix their writes and a crash leaves the earlier file. Nothing here raises for a bad file: a lesson must go
on, so a trouble becomes a sentence that the widget shows, and this session's answers stay in memory.
"""

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from traceonce.errors import TraceOnceError

VERSION = 1
_LOCK_SECONDS = 1.0


@dataclass(frozen=True)
class Answer:
    """One choice that the learner took. `late` says that the measured value was already shown."""

    choice: str
    at: str
    late: bool = False


@dataclass(frozen=True)
class Reveal:
    """One measured value that an evidence cell showed."""

    measured: str
    at: str


@dataclass(frozen=True)
class Asked:
    """Everything known of one prediction. Times are UTC, ISO 8601, to the second."""

    id: str
    question: str
    choices: tuple[str, ...]
    asked: str
    answers: tuple[Answer, ...] = ()
    reveals: tuple[Reveal, ...] = ()

    @property
    def counted(self) -> Answer | None:
        """The answer that counts: the last one before the first reveal. Later ones are kept, not counted."""
        in_time = [answer for answer in self.answers if not answer.late]
        return in_time[-1] if in_time else None

    @property
    def latest(self) -> Answer | None:
        """The choice taken last, in time or not."""
        return self.answers[-1] if self.answers else None

    @property
    def measured(self) -> str | None:
        """The value measured last, or None before the evidence ran."""
        return self.reveals[-1].measured if self.reveals else None

    @property
    def as_measured(self) -> bool | None:
        """Whether the counted answer is the measured value; None while one of them is missing."""
        if self.counted is None or self.measured is None:
            return None
        return self.counted.choice == self.measured

    def with_answer(self, choice: str, at: str) -> "Asked":
        """This record with one more answer; the same choice twice in a row is one answer."""
        late = bool(self.reveals)
        if self.latest is not None and (self.latest.choice, self.latest.late) == (choice, late):
            return self
        return replace(self, answers=(*self.answers, Answer(choice, at, late)))

    def with_reveal(self, measured: str, at: str) -> "Asked":
        """This record with the measured value; the same value again changes nothing."""
        if self.measured == measured:
            return self
        return replace(self, reveals=(*self.reveals, Reveal(measured, at)))


@dataclass(frozen=True)
class Ledger:
    """What the progress file says, and a sentence about it where it could not be read."""

    predictions: Mapping[str, Asked] = field(default_factory=dict)
    trouble: str | None = None


def now() -> str:
    """The time of an answer: UTC, ISO 8601, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def progress_path() -> Path:
    """`$TRACEONCE_PROGRESS`, else `progress.json` in the user's data folder."""
    named = os.environ.get("TRACEONCE_PROGRESS")
    if named:
        return Path(named).expanduser()
    from platformdirs import user_data_path

    return user_data_path("traceonce", appauthor=False) / "progress.json"


class NotAProgressFile(ValueError):
    """The file is there, but it is not one that `write` made."""


class NewerProgressFile(ValueError):
    """The file was written by a later version of Trace Once."""


def read(path: Path | None = None) -> Ledger:
    """What the file says. A missing one is empty; an unreadable one is empty too, with a sentence in `trouble`."""
    path = progress_path() if path is None else path
    try:
        return Ledger(_decode(_load(path)))
    except NewerProgressFile:
        return Ledger(trouble=_newer(path))
    except NotAProgressFile as error:
        return Ledger(
            trouble=f"The progress file {path} cannot be read ({error}); the next answer starts a new one and keeps this one beside it."
        )
    except OSError as error:
        return Ledger(trouble=f"The progress file {path} cannot be read ({error.strerror}).")


def update(path: Path, key: str, change: Callable[[Asked | None], Asked]) -> str | None:
    """Replace the record of `key` by `change(record)` in the file at `path`.

    Returns None, or a sentence that says why the record was lost or what became of a file that was no progress file.
    """

    def renew(document: dict[str, Any], predictions: dict[str, Asked]) -> dict[str, Any]:
        predictions[key] = change(predictions.get(key))
        return document

    return _amend(path, renew)


def section(document_path: Path, name: str) -> Any:
    """What the file keeps under a name beside the predictions, as JSON gave it; None where nothing can be read.

    `read` says what is wrong with a file that cannot be read.
    """
    try:
        document = _load(document_path)
        _decode(document)
    except (NewerProgressFile, NotAProgressFile, OSError):
        return None
    return document.get(name)


def update_section(path: Path, name: str, change: Callable[[Any], Any]) -> str | None:
    """Replace what the file keeps under `name` by `change` of it (None where there is nothing yet).

    Returns None or a sentence, as `update` does.
    """
    if name in ("version", "predictions"):
        raise ValueError(f"{name!r} is not a section of its own.")
    return _amend(path, lambda document, _: document | {name: change(document.get(name))})


def _amend(path: Path, change: Callable[[dict[str, Any], dict[str, Asked]], dict[str, Any]]) -> str | None:
    """Read the file, change it and put it back, under the lock; None, or what a person should know."""
    said = None
    try:
        path = path.resolve()  # a symbolic link stays one
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_name(path.name + ".lock")):
            try:
                document = _load(path)
                predictions = _decode(document)
            except NotAProgressFile as error:
                aside = _move_aside(path)
                said = (
                    f"The progress file could not be read ({error}). It is kept as {aside}, and a new one was started."
                )
                document, predictions = {}, {}
            document = change(document, predictions)
            _store(path, document, predictions)
    except NewerProgressFile:
        return _newer(path)
    except TimeoutError:
        return f"This was not recorded: another program holds the progress file {path}."
    except OSError as error:
        return f"This was not recorded: {path} cannot be written ({error.strerror}). Set TRACEONCE_PROGRESS to a file that can."
    return said


def forget(path: Path, lesson: str) -> tuple[int, Path | None]:
    """Take the predictions of a lesson (``"01"``, or ``"all"``) out of the file; how many, and where the old file is kept.

    With ``"inventory"`` its answers go and the predictions stay.

    **Raises**: `TraceOnceError` where the file cannot be read or written.
    """
    try:
        path = path.resolve()  # a symbolic link stays one
        with _locked(path.with_name(path.name + ".lock")):
            document = _load(path)
            kept = {k: asked for k, asked in _decode(document).items() if lesson not in ("all", k.partition("-")[0])}
            gone = len(document.get("predictions", {})) - len(kept)
            if lesson == "inventory":
                gone = _answers_in(document.pop("inventory", None))
            if not gone:
                return 0, None
            before = _beside(path, "before")
            before.write_bytes(path.read_bytes())
            _store(path, document, kept)
    except FileNotFoundError:
        return 0, None
    except (NewerProgressFile, NotAProgressFile, TimeoutError, OSError) as error:
        raise TraceOnceError(f"Nothing was forgotten: {path} cannot be read and written ({error}).") from error
    return gone, before


def _answers_in(section: Any) -> int:
    """How many answers a section of the inventory holds; one that is no such section counts as one."""
    try:
        return sum(len(section[when]["answers"]) for when in ("before", "after")) if section else 0
    except (KeyError, TypeError):
        return 1


def _newer(path: Path) -> str:
    return f"This was not recorded: a later version of Trace Once wrote {path}. Update Trace Once to go on with it."


def _load(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError as error:  # not JSON, or not UTF-8
        raise NotAProgressFile("it is not JSON") from error
    if not isinstance(document, dict):
        raise NotAProgressFile("it holds no progress")
    return document


def _decode(document: dict[str, Any]) -> dict[str, Asked]:
    if not document:
        return {}
    version = document.get("version")
    if isinstance(version, int) and version > VERSION:
        raise NewerProgressFile
    try:
        return {key: _asked(entry) for key, entry in document["predictions"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise NotAProgressFile("an entry has not the shape of a prediction") from error


def _asked(entry: Mapping[str, Any]) -> Asked:
    return Asked(
        id=str(entry["id"]),
        question=str(entry["question"]),
        choices=tuple(map(str, entry["choices"])),
        asked=str(entry["asked"]),
        answers=tuple(Answer(str(a["choice"]), str(a["at"]), bool(a["late"])) for a in entry["answers"]),
        reveals=tuple(Reveal(str(r["measured"]), str(r["at"])) for r in entry["reveals"]),
    )


def _move_aside(path: Path) -> Path:
    aside = _beside(path, "unreadable")
    path.replace(aside)
    return aside


def _beside(path: Path, word: str) -> Path:
    """A name for another state of the file, which no other has."""
    return path.with_name(f"{path.stem}.{word}-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%f')}{path.suffix}")


def _store(path: Path, document: dict[str, Any], predictions: Mapping[str, Asked]) -> None:
    """Write the file with these predictions. Keys that this version does not know are somebody's record too: they stay."""
    document = document | {"version": VERSION, "predictions": {k: asdict(v) for k, v in predictions.items()}}
    _replace(path, json.dumps(document, indent=1, ensure_ascii=False))


def _replace(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=path.name, suffix=".new", dir=path.parent)
    new = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    finally:
        with suppress(FileNotFoundError):  # it is gone once it took its place
            new.unlink()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`; TimeoutError after a second, so that a cell never hangs on it."""
    with path.open("a+b") as file:
        deadline = time.monotonic() + _LOCK_SECONDS
        while not _try_lock(file):
            if time.monotonic() > deadline:
                raise TimeoutError
            time.sleep(0.01)
        yield  # closing the file lets go of the lock


def _try_lock(file: IO[bytes]) -> bool:
    try:
        import fcntl
    except ImportError:  # Windows
        return _try_lock_on_windows(file)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some network file systems know no locks. The rename still keeps the file whole, so go on without one.
        return True
    return True


def _try_lock_on_windows(file: IO[bytes]) -> bool:
    import msvcrt

    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except OSError:
        return False
    return True
