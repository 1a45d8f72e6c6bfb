"""How much memory the processes below one process hold, read from ``/proc`` from outside."""

from contextlib import suppress
from pathlib import Path


def descendants(root: int) -> list[int]:
    """The process `root` and everything below it. Processes that end meanwhile are left out."""
    found = [root]
    for pid in found:
        for listing in _children_files(pid):
            with suppress(FileNotFoundError, ProcessLookupError):
                found.extend(int(number) for number in listing.read_text().split())
    return found


def _children_files(pid: int) -> list[Path]:
    try:
        return [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def memory_mb(root: int, limit_mb: float) -> float:
    """MB of memory that the processes below `root` hold, without `root` itself.

    Resident memory counts pages that processes share once for each, so it is only the first, cheap answer. Where it is over
    `limit_mb`, each page is counted by its share instead (`Pss`), which takes about a millisecond a process.
    """
    family = descendants(root)[1:]
    resident = {pid: _resident_mb(pid) for pid in family}
    if (total := sum(resident.values())) <= limit_mb:
        return total
    return sum(_proportional_mb(pid, resident[pid]) for pid in family)


def peak_mb(root: int) -> float:
    """MB that each process below `root` has held at most, added up. Ended processes are not in it."""
    return sum(_field_mb(Path(f"/proc/{pid}/status"), "VmHWM:") for pid in descendants(root)[1:])


def _resident_mb(pid: int) -> float:
    return _field_mb(Path(f"/proc/{pid}/status"), "VmRSS:")


def _proportional_mb(pid: int, resident: float) -> float:
    """Its share; all that is resident for a process that forbids the look (`PR_SET_DUMPABLE`), so that hiding is no gain."""
    try:
        return _field_mb(Path(f"/proc/{pid}/smaps_rollup"), "Pss:")
    except PermissionError:
        return resident


def _field_mb(file: Path, name: str) -> float:
    """A field in kB; 0 for a process that has ended, which holds nothing."""
    try:
        for line in file.read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) / 1024
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return 0.0
