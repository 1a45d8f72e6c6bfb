"""`traceonce doctor`: what this machine has, what stands in the way, and what to do about it.

- `findings`: one line, and all of them as text or JSON
- `machine`: the only way by which checks look at the machine
- `packages`, `devices`, `memory`, `places`: the checks
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from traceonce.doctor import devices, memory, packages, places
from traceonce.doctor.findings import Finding as Finding
from traceonce.doctor.findings import as_json, as_text, exit_code
from traceonce.doctor.machine import Machine as Machine

Check = Callable[[Machine], Iterator[Finding]]

CHECKS: tuple[Check, ...] = (
    packages.versions,
    packages.plugins,
    packages.cudnn,
    devices.backend,
    devices.allocator,
    devices.gpu,
    memory.machine_memory,
    memory.process_limits,
    memory.control_groups,
    memory.pressure,
    places.compile_cache,
    places.progress_file,
    places.desk,
    places.namespaces,
)


def examine(machine: Machine) -> list[Finding]:
    """Make every check and return what each found, in the order in which a reader wants it."""
    return [finding for check in CHECKS for finding in check(machine)]


def doctor(*, as_json_document: bool = False) -> int:
    """Print what was found on this machine and return the exit code: 1 where something failed."""
    findings = examine(Machine())
    print(as_json(findings) if as_json_document else as_text(findings))
    return exit_code(findings)


__all__ = ["Check", "Finding", "Machine", "doctor", "examine"]
