"""The course for learners: lessons, labs and tools, without solutions, hidden asserts, submissions, proofs and history."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from traceonce.author.course import Course
from traceonce.bundle.leaks import find_leaks, secrets_in
from traceonce.bundle.output import Part, refuse_as_file, write_zip
from traceonce.errors import TraceOnceError
from traceonce.grade.lab import find_root

TOP = "trace-once"
"""The folder that the archive unpacks to."""

# What goes in; nothing else does. The README is the learners' own.
_FILES = (
    "LICENSE",
    "LICENSE-COURSE",
    "Makefile",
    "pyproject.toml",
    "requirements/make_env.sh",
    "requirements/bootstrap.txt",
    "requirements/learn.txt",
    "requirements/cuda12.txt",
    "requirements/cuda13.txt",
    ".binder/postBuild",
    ".binder/runtime.txt",
)
_FOLDERS = ("course", "labs", "docs", "src/traceonce", "deploy")
_FOR_AUTHORS = ("jupytext.toml", "authoring.md", "claims.toml", "design.md", "grading.md", "teaching.md")
_LEFT_OUT = (Path("docs/graders"), Path("docs/site"), Path("docs/pictures"))


def bundle_students(*, out: Path, force: bool = False, root: Path | None = None) -> int:
    """Make the archive; returns how many files are in it.

    **Raises**: `UsageError` for a file that is there; `TraceOnceError` where a file of the course is missing, or where one
    that would go in holds text of a solution or of a hidden assert.
    """
    root = root or find_root()
    refuse_as_file(out, force=force)
    secrets = secrets_in(root)
    if not secrets:
        raise TraceOnceError(
            f"{root} has no solutions and no hidden asserts to search for: make the archive in a whole checkout."
        )
    parts = student_parts(root)
    if leaks := list(find_leaks(parts, secrets)):
        found = "; ".join(f"{name} ({where})" for name, where in leaks[:5])
        raise TraceOnceError(
            f"No archive was made: {len(leaks)} place(s) hold text of a solution or of a hidden assert: {found}. Take it out, or list it "
            "in traceonce/bundle/leaks.py where a lesson shows it on purpose."
        )
    write_zip(out, {f"{TOP}/{name}": part for name, part in parts.items()}, force=force)
    return len(parts)


def student_parts(root: Path) -> dict[str, Part]:
    """The files of the archive, by their place in the course. **Raises**: `TraceOnceError` where one is missing."""
    names = sorted(_names(root))
    if missing := [name for name in names if not (root / name).is_file()]:
        raise TraceOnceError(f"{root / missing[0]} is not there: get a fresh checkout.")
    parts = {str(name): Part.of(root / name) for name in names}
    parts["README.md"] = Part((files("traceonce.bundle") / "learners" / "README.md").read_bytes())
    return parts


def _names(root: Path) -> Iterator[Path]:
    yield from map(Path, _FILES)
    for name in _files_below(root):
        paired = name.suffix == ".py" and (root / name).with_suffix(".ipynb").exists()
        hidden = any(part.startswith(".") or part == "__pycache__" for part in name.parts)
        if not (paired or hidden or name.name in _FOR_AUTHORS or any(map(name.is_relative_to, _LEFT_OUT))):
            yield name


def _files_below(root: Path) -> list[Path]:
    """The files of the folders that go in. In a git checkout what nobody has committed is a draft or a leftover."""
    if (root / ".git").exists():
        found = list(Course(root).tracked_files())
    else:
        found = [path.relative_to(root) for folder in _FOLDERS for path in (root / folder).rglob("*") if path.is_file()]
    inside = (name for name in found if any(name.is_relative_to(folder) for folder in _FOLDERS))
    return sorted(name for name in inside if not (root / name).is_symlink())
