"""What a grader needs of a lab and a learner must not see: the reference, the hidden asserts, and the seed.

The files lie as they do in a checkout (``solutions/``, ``tests/hidden/``), so that grading takes the folder that holds them for its
root, and nothing of the course around it.
"""

import ast
from pathlib import Path

from traceonce.bundle.output import Part
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade import kept
from traceonce.grade.batch import graded_marks, hidden_file
from traceonce.grade.lab import lab_names, load_lab

SEED = "seed"


def files_of(lab: str, root: Path) -> dict[str, Part]:
    """The files that grading a lab reads.

    **Raises**: `UsageError` where there is no such lab; `TraceOnceError` where it has no hidden asserts.
    """
    load_lab(lab, root=root)  # refuses an unknown or a faulty one
    hidden = hidden_file(root, lab)
    if not hidden.is_file():
        raise TraceOnceError(f"{lab} has no hidden asserts yet: write {hidden.relative_to(root)} first.")
    source = root / "solutions" / f"{lab}.py"
    return {f"solutions/{lab}.py": Part.of(source), f"tests/hidden/test_{lab}.py": Part.of(hidden)}


def new_seed(seed_file: Path | None) -> Part:
    """The secret that random inputs are made from: a new one, or the one in a file.

    **Raises**: `UsageError` for a file that holds none.
    """
    if seed_file is None:
        return Part.text(kept.new_seed(), 0o600)
    return Part(kept.read_seed(seed_file, UsageError) + b"\n", 0o600)


def read_seed(folder: Path) -> bytes:
    """The seed of a bundle. **Raises**: `TraceOnceError` where it is gone."""
    try:
        return (folder / SEED).read_bytes().strip()
    except OSError as error:
        raise TraceOnceError(
            f"The seed {folder / SEED} cannot be read ({error.strerror}): put it back, or make the bundle anew."
        ) from error


def points_by_task(lab: str, root: Path) -> dict[str, float]:
    """What each task of a lab is worth, in the order of its hidden asserts, read from their text: nothing of it is run.

    **Raises**: `TraceOnceError` where a task or its points do not stand there as plain values.
    """
    hidden = hidden_file(root, lab)
    found: dict[str, float] = {}
    for line, words in graded_marks(hidden):
        try:
            task, points = ast.literal_eval(words["task"]), float(ast.literal_eval(words["points"]))
        except (KeyError, ValueError) as error:
            raise TraceOnceError(f"{hidden}, line {line}: write task and points of @graded as plain values.") from error
        found[task] = found.get(task, 0.0) + points
    return found


def chosen_labs(labs: list[str], root: Path) -> list[str]:
    """The labs that were asked for, each once; all of the course's where none was. **Raises**: `UsageError`."""
    known = lab_names(root)
    if unknown := [lab for lab in labs if lab not in known]:
        raise UsageError(f"There is no lab {unknown[0]!r}: the labs are {', '.join(known) or 'none yet'}.")
    return list(dict.fromkeys(labs)) or [lab for lab in known if hidden_file(root, lab).is_file()]
