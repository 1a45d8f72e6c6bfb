"""For the people who write the course: pairs, labs, claims, gates and the proof of the graders.

| module | what it does |
|---|---|
| `course` | where things are: `Course`, `Pair`, `Finding` |
| `notebooks` | a source and its outputs become one canonical notebook |
| `execution` | runs a notebook in a fresh kernel |
| `starters` | ``labs/`` from ``solutions/``, by nbgrader's own preprocessors |
| `building` | brings all of it up to date, or says what differs |
| `cell_log`, `changes` | beside nbval: what each cell printed, and which of it is not what is stored |
| `gates` | what must hold in every notebook and in the tree |
| `coverage` | the claims that a lesson owes, and the cells that show them |
| `proof` | every submission against every hidden assert |
"""

from pathlib import Path


def build(*, check: bool) -> int:
    """Make labs from solutions and bring every pair into sync; with `check` change nothing, print what differs.

    Returns the exit code: 0, or 1 where something differs or a notebook does not run.
    """
    from traceonce.author.building import build as run
    from traceonce.author.building import check as run_check
    from traceonce.author.course import find_course

    return run_check(find_course()) if check else run(find_course())


def claims(*, check: bool, as_json: bool) -> int:
    """Print each lesson's claims and the cells that show them; with `check` 1 is returned where one is not shown."""
    from traceonce.author.course import find_course
    from traceonce.author.coverage import report

    return report(find_course(), check=check, as_json=as_json)


def changed(*, notebooks: list[str], summary: Path | None, as_json: bool) -> int:
    """Print each cell whose output on this environment's JAX is not the stored one; returns 1 where there is one."""
    from traceonce.author.changes import changed as run
    from traceonce.author.course import find_course

    return run(find_course(), names=notebooks, summary=summary, as_json=as_json)


def graders(*, lab: str | None, seeds: int, first: int, write: Path | None, as_json: bool) -> int:
    """Prove the graders on `seeds` seeds from `first` on, or with `write` only write the submissions as notebooks."""
    from traceonce.author.course import find_course
    from traceonce.author.proof import prove
    from traceonce.author.submissions import write_notebooks

    if write is not None:
        return write_notebooks(find_course(), lab=lab, folder=write)
    return prove(find_course(), lab=lab, seeds=seeds, first=first, as_json=as_json)
