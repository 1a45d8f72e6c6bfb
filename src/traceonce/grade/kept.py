"""What a batch keeps in its output folder: the seed, a record for each submission, and the reports about all of them.

Records are written and let go of, and read again for the reports one after the other, so that a batch takes as much memory for thousands of
submissions as for ten. What was finished is found by the next run, whatever ended this one.
"""

import contextlib
import fcntl
import os
import secrets
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import overload

from traceonce.errors import TraceOnceError
from traceonce.grade import reports
from traceonce.grade.record import Record, write_atomically
from traceonce.grade.summary import summary_html

FORMATS = ("gradescope", "junit", "csv", "feedback", "summary")
"""What can be written; `_OF_ALL` are the files about all submissions."""

_OF_ALL: tuple[tuple[str, str, Callable[[Iterable[Record]], Iterable[str]]], ...] = (
    ("csv", "grades.csv", reports.grades_csv),
    ("junit", "junit.xml", reports.junit),
    ("summary", "summary.html", summary_html),
)

_SEED_BYTES = 32
FEWEST_CHARACTERS = 16
"""A shorter seed could be guessed."""


@contextlib.contextmanager
def held(out: Path) -> Iterator[Path]:
    """The output folder, made and held: one grader at a time writes to it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        lock = os.open(out / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise TraceOnceError(
            f"The folder {out} cannot be written to ({error.strerror}): choose another --out."
        ) from error
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield out
    except BlockingIOError as error:
        raise TraceOnceError(f"Another grader is writing to {out}: wait for it, or choose another --out.") from error
    finally:
        os.close(lock)


def new_seed() -> str:
    """A secret, as a line of text."""
    return secrets.token_hex(_SEED_BYTES) + "\n"


def read_seed(path: Path, error: type[TraceOnceError] = TraceOnceError) -> bytes:
    """The seed in a file. **Raises**: `error` for a file that holds none."""
    try:
        seed = path.read_bytes().strip()
    except OSError as refused:
        raise error(f"The seed file {path} cannot be read ({refused.strerror}): name another.") from refused
    if len(seed) < FEWEST_CHARACTERS:
        raise error(
            f"The seed in {path} is shorter than {FEWEST_CHARACTERS} characters, so it could be guessed: make it longer."
        )
    return seed


def seed_of(folder: Path, seed_file: Path | None) -> bytes:
    """The secret seed: from the file, or made once for the folder."""
    path = seed_file or folder / "seed"
    if seed_file is None and not path.exists():
        if next(folder.glob("*/record.json"), None) is not None:
            raise TraceOnceError(
                f"There are records in {folder} and the seed that they were made with is gone: put it back as {path}, name it with "
                "--seed-file, or choose another --out."
            )
        try:
            write_atomically(path, new_seed(), mode=0o600)
        except OSError as error:
            raise TraceOnceError(
                f"The seed {path} cannot be written ({error.strerror}): make room, or choose another --out."
            ) from error
    return read_seed(path)


@dataclass
class Kept(Sequence[Record]):
    """The records of one run, in the order of its notebooks. Each is read from its file when it is asked for.

    **Arguments**

    - `names`: of the submissions; `statuses`: how many of which; `defects`: by name, what is no grade.
    """

    folder: Path
    names: list[str] = field(default_factory=list)
    statuses: Counter[str] = field(default_factory=Counter)
    defects: dict[str, str] = field(default_factory=dict)

    def count(self, record: Record) -> None:  # type: ignore[override]
        """Take note of a record that is there."""
        self.statuses[record.status] += 1
        if record.defect:
            self.defects[record.submission] = record.defect

    def find(self, name: str, key: str) -> Record | None:
        """The record of an earlier run, where it was made from the same things and is a grade."""
        try:
            record = Record.from_json((self.folder / name / "record.json").read_text("utf-8"))
        except (OSError, UnicodeDecodeError):
            return None
        return record if record and record.key == key and not record.defect else None

    def write(self, record: Record, formats: tuple[str, ...]) -> None:
        """Reports first, the record last: where the record is, all of it is."""
        place = self.folder / record.submission
        try:
            place.mkdir(exist_ok=True)
            if "gradescope" in formats:
                write_atomically(place / "results.json", reports.gradescope(record))
            if "feedback" in formats:
                write_atomically(place / "feedback.txt", reports.feedback_text(record))
                write_atomically(place / "feedback.html", reports.feedback_html(record))
            write_atomically(place / "record.json", record.to_json())
        except OSError as error:
            raise TraceOnceError(
                f"The record of {record.submission} cannot be written ({error.strerror}): make room in {self.folder} and run the "
                "command again; finished records are kept."
            ) from error

    def write_reports(self, formats: tuple[str, ...]) -> None:
        """The files that are about all submissions, those of earlier runs too."""
        order = [
            (record.lab, record.student, record.submission) for record in _read(self.folder, _names_in(self.folder))
        ]
        names = [name for _, _, name in sorted(order)]
        for wanted, file, make in _OF_ALL:
            if wanted in formats:
                try:
                    write_atomically(self.folder / file, make(_read(self.folder, names)))
                except OSError as error:
                    raise TraceOnceError(
                        f"{self.folder / file} cannot be written ({error.strerror}): make room."
                    ) from error

    def write_reports_if_possible(self, formats: tuple[str, ...]) -> None:
        """Bring the reports up to date after a batch that ended early. What ended it is what is told, not this."""
        try:
            self.write_reports(formats)
        except TraceOnceError as error:
            print(f"traceonce: {error}", file=sys.stderr)

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return list(_read(self.folder, self.names[index]))
        (record,) = _read(self.folder, [self.names[index]])
        return record


def _names_in(folder: Path) -> Iterator[str]:
    return (path.parent.name for path in sorted(folder.glob("*/record.json")))


def _read(folder: Path, names: Iterable[str]) -> Iterator[Record]:
    """Records, one after the other. What is no record of this version is left out.

    **Raises**: `TraceOnceError` for one that cannot be read: the reports would be silent about somebody.
    """
    for name in names:
        path = folder / name / "record.json"
        try:
            record = Record.from_json(path.read_text("utf-8", "replace"))
        except OSError as error:
            raise TraceOnceError(
                f"The record {path} cannot be read ({error.strerror}): make it readable, or remove it."
            ) from error
        if record is not None and record.submission == name:
            yield record
