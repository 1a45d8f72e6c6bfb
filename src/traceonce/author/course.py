"""Where the parts of the course are, and how a fault in one of them is told."""

import re
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from traceonce.errors import TraceOnceError
from traceonce.grade.percent import SourceCell, read_percent

_LESSON = re.compile(r"\d\d_[a-z0-9_]+")
_LAB = re.compile(r"lab\d\d_[a-z0-9_]+")

CELL_METADATA = ("tags", "claims", "ignored", "nbgrader", "editable", "deletable", "slideshow")
"""The keys of a cell's metadata that a source may carry; ``jupytext.toml`` lets the same ones through."""


@dataclass(frozen=True)
class Finding:
    """Something that a person has to mend: the place (relative to the root) and one sentence."""

    where: str
    sentence: str

    def __str__(self) -> str:
        return f"{self.where}: {self.sentence}"


@dataclass(frozen=True)
class Pair:
    """A source in percent format and its executed notebook.

    **Arguments**

    - `root`: the folder of the course.
    - `source`: the ``.py``, relative to the root.
    - `kind`: `index`, `lesson`, `lab`, or `page`: what stands beside the lessons, in a folder of its own name in ``course/``.
    """

    root: Path
    source: Path
    kind: Literal["index", "lesson", "page", "lab"]

    @property
    def name(self) -> str:
        """The name that the source, the notebook, and for a lab the starter share."""
        return self.source.stem

    @property
    def lesson(self) -> str:
        """The lesson that a notebook belongs to: the name of its folder. A long lesson has more notebooks than one."""
        return self.source.parent.name

    @property
    def notebook(self) -> Path:
        """The executed notebook, relative to the root."""
        return self.source.with_suffix(".ipynb")

    @property
    def starter(self) -> Path:
        """The learner's notebook of a lab, relative to the root."""
        return Path("labs") / self.notebook.name

    @cached_property
    def cells(self) -> tuple[SourceCell, ...]:
        """The cells of the source, read once. Raises `TraceOnceError` where it cannot be read."""
        return read_percent((self.root / self.source).read_text("utf-8"), str(self.source))

    def at(self, cell: SourceCell) -> str:
        """The place of a cell in the source, for a finding."""
        return f"{self.source}:{cell.line}"


@dataclass(frozen=True)
class Course:
    """A checkout of the course."""

    root: Path

    @cached_property
    def pairs(self) -> tuple[Pair, ...]:
        """Every pair, in reading order: the index, the lessons, the pages beside them, the labs."""
        found = [Pair(self.root, Path("course/index.py"), "index")] if (self.root / "course/index.py").is_file() else []
        for folder in sorted((self.root / "course").glob("*")):
            first = folder / f"{folder.name}.py"
            if _LESSON.fullmatch(folder.name) and first.is_file():
                further = sorted(folder.glob(f"{folder.name[:2]}[a-z]_*.py"))
                found += [Pair(self.root, source.relative_to(self.root), "lesson") for source in (first, *further)]
        for folder in sorted((self.root / "course").glob("*")):
            page = folder / f"{folder.name}.py"
            if page.is_file() and not _LESSON.fullmatch(folder.name):
                found.append(Pair(self.root, page.relative_to(self.root), "page"))
        for source in sorted((self.root / "solutions").glob("*.py")):
            if _LAB.fullmatch(source.stem):
                found.append(Pair(self.root, source.relative_to(self.root), "lab"))
        return tuple(found)

    @property
    def lessons(self) -> tuple[Pair, ...]:
        """The pairs that are lessons."""
        return tuple(pair for pair in self.pairs if pair.kind == "lesson")

    @property
    def labs(self) -> tuple[Pair, ...]:
        """The pairs that are labs."""
        return tuple(pair for pair in self.pairs if pair.kind == "lab")

    def tracked_files(self) -> tuple[Path, ...]:
        """Every file that git tracks, relative to the root.

        **Raises**: `TraceOnceError` where the root is not a git checkout.
        """
        listing = subprocess.run(["git", "ls-files", "-z"], cwd=self.root, capture_output=True, text=True, check=False)
        if listing.returncode != 0:
            raise TraceOnceError(f"git cannot list the files of {self.root}: run this in a git checkout of the course.")
        names = (Path(name) for name in listing.stdout.split("\0") if name)
        return tuple(name for name in names if (self.root / name).is_file())


def find_course(start: Path | None = None) -> Course:
    """The course that holds this package, or the one at `start` (the current folder) or above it.

    **Raises**: `TraceOnceError` where there is none.
    """
    here = (start or Path.cwd()).resolve()
    for folder in (Path(__file__).resolve().parents[3], here, *here.parents):
        if (folder / "docs" / "claims.toml").is_file():
            return Course(folder)
    raise TraceOnceError(
        f"No course is found at {here} or above it: run this inside a checkout, which has docs/claims.toml."
    )
