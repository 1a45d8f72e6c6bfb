"""Memory: how much there is, who caps it, and who is under pressure.

Sources: proc(5) for `meminfo`, `limits` and `mountinfo`; the kernel's `cgroup-v2` and `cgroup-v1/memory` pages for the
files of a control group; its `psi` page for `/proc/pressure`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from traceonce.doctor.findings import Finding
from traceonce.doctor.machine import Machine

GIB = 2**30
_NEEDED = 2 * GIB
"""What a lesson with JupyterLab, a browser tab and one kernel wants to have free."""
_ADDRESS_SPACE_NEEDED = 4 * GIB
"""JAX on a CPU maps about 1 GiB of addresses before the first array; a lesson several times that."""
_PRESSED = 10.0
_UNLIMITED_V1 = 2**60
_PRESSURE_KILLERS = ("systemd-oomd", "earlyoom", "oomd")


def size(count: float) -> str:
    """Return bytes as people read them: `512 MiB`, `7.5 GiB`."""
    if count >= GIB:
        return f"{count / GIB:.1f} GiB"
    if count >= 2**20:
        return f"{count / 2**20:.0f} MiB"
    return f"{count / 2**10:.0f} KiB"


def machine_memory(machine: Machine) -> Iterator[Finding]:
    """The machine's memory and swap, and whether addresses can be reserved ahead."""
    totals = _meminfo(machine)
    if "MemTotal" not in totals:
        yield from _memory_without_proc()
        return
    total, free, swap = totals["MemTotal"], totals.get("MemAvailable", 0), totals.get("SwapTotal", 0)
    found = f"{size(total)}, {size(free)} available, {size(swap) if swap else 'no'} swap"
    if free < _NEEDED:
        yield Finding("WARN", "memory", found, "close something: below 2 GiB a lesson may be killed half-way.")
    else:
        yield Finding("OK", "memory", found)
    if machine.read_number("/proc/sys/vm/overcommit_memory") == 2:
        limit = size(totals.get("CommitLimit", 0))
        found = f"strict (vm.overcommit_memory is 2): all processes together may reserve {limit}, used or not"
        yield Finding("WARN", "overcommit", found, "expect allocation errors while memory is free; ask for mode 0.")


def _memory_without_proc() -> Iterator[Finding]:
    import psutil

    memory, swap = psutil.virtual_memory(), psutil.swap_memory()
    found = f"{size(memory.total)}, {size(memory.available)} available, {size(swap.total) if swap.total else 'no'} swap"
    if memory.available < _NEEDED:
        yield Finding("WARN", "memory", found, "close something: below 2 GiB a lesson may be killed half-way.")
    else:
        yield Finding("OK", "memory", found)


def _meminfo(machine: Machine) -> dict[str, int]:
    lines = re.findall(r"^(\w+):\s+(\d+) kB$", machine.read("/proc/meminfo") or "", re.MULTILINE)
    return {name: int(kib) * 1024 for name, kib in lines}


def process_limits(machine: Machine) -> Iterator[Finding]:
    """The limits of this process (`ulimit`), which its children inherit."""
    text = machine.read("/proc/self/limits")
    soft = _limits_from_proc(text) if text is not None else _limits_from_system()
    capped = False
    for name, flag, unit in (("address space", "v", GIB), ("data size", "d", GIB), ("processes", "u", 1)):
        limit = soft.get(name)
        if limit is None or (name == "processes" and limit >= 1024):
            continue
        capped = True
        shown = str(limit) if unit == 1 else size(limit)
        found = f"{name} is limited to {shown} (`ulimit -{flag}`)"
        if name == "processes":
            yield Finding("WARN", "process limits", found, "each thread counts; raise it if threads cannot be started.")
        elif limit < _ADDRESS_SPACE_NEEDED:
            advice = (
                f"raise it (`ulimit -{flag} unlimited`): an array over it ends in RESOURCE_EXHAUSTED or an abort (134)."
            )
            yield Finding("WARN", "process limits", found, advice)
        else:
            yield Finding("OK", "process limits", f"{found}; RESOURCE_EXHAUSTED or exit 134 is what it looks like")
    if not capped:
        yield Finding("OK", "process limits", "none on address space or data size")


def _limits_from_proc(text: str) -> dict[str, int]:
    return {name: int(soft) for name, soft in re.findall(r"^Max (\w[\w ]*?)\s{2,}(\d+)\s", text, re.MULTILINE)}


def _limits_from_system() -> dict[str, int]:
    import resource

    kinds = {"address space": resource.RLIMIT_AS, "data size": resource.RLIMIT_DATA, "processes": resource.RLIMIT_NPROC}
    soft = {name: resource.getrlimit(kind)[0] for name, kind in kinds.items()}
    return {name: limit for name, limit in soft.items() if limit != resource.RLIM_INFINITY}


@dataclass(frozen=True)
class Group:
    """A control group that this process is in, with the files that cap its memory.

    **Arguments**

    - `version`: 1 or 2.
    - `folder`: where its files are.
    - `limit`: the least limit on the way up, in bytes, and the folder that sets it; `None` without one.
    - `used`: bytes in use there, without file pages that the kernel can drop.
    - `kills`: processes that the kernel killed there for want of memory.
    """

    version: int
    folder: PurePosixPath
    limit: tuple[int, PurePosixPath] | None
    used: int
    kills: int


def groups(machine: Machine) -> list[Group]:
    """Return the control groups that account this process's memory: one of version 1, of version 2, or none."""
    found = []
    for line in (machine.read("/proc/self/cgroup") or "").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        version = 2 if number == "0" and not controllers else 1 if "memory" in controllers.split(",") else 0
        mount = _mount(machine, version) if version else None
        if mount is None:
            continue
        root, mountpoint = mount
        folder = _below(machine, root, mountpoint, PurePosixPath(path))
        group = _group(machine, version, mountpoint, folder)
        if group is not None:
            found.append(group)
    return found


def _mount(machine: Machine, version: int) -> tuple[PurePosixPath, PurePosixPath] | None:
    """The mount of a hierarchy with memory in it: what part of it is mounted, and where."""
    for line in (machine.read("/proc/self/mountinfo") or "").splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < 5 or len(kinds) < 3:
            continue
        right = kinds[0] == "cgroup2" if version == 2 else kinds[0] == "cgroup" and "memory" in kinds[2].split(",")
        if right:
            return PurePosixPath(_unescaped(fields[3])), PurePosixPath(_unescaped(fields[4]))
    return None


def _unescaped(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def _below(machine: Machine, root: PurePosixPath, mountpoint: PurePosixPath, path: PurePosixPath) -> PurePosixPath:
    """Where the files of the group `path` are. A container may be shown a path that is not mounted in it."""
    inner = path.relative_to(root) if path.is_relative_to(root) else path.relative_to("/")
    folder = mountpoint / inner
    return folder if ".." not in inner.parts and machine.path(folder).is_dir() else mountpoint


def _group(machine: Machine, version: int, top: PurePosixPath, folder: PurePosixPath) -> Group | None:
    names = {1: ("memory.limit_in_bytes", "memory.usage_in_bytes"), 2: ("memory.max", "memory.current")}
    limit_file, used_file = names[version]
    used = machine.read_number(folder / used_file)
    limits = []
    for place in (folder, *folder.parents):
        limit = machine.read_number(place / limit_file)
        if limit is not None and limit < _UNLIMITED_V1:
            limits.append((limit, place))
        if place == top:
            break
    if used is None and not limits:
        return None  # no memory controller in this hierarchy
    least = min(limits, default=None)
    counted = folder if least is None else least[1]
    kills = _number_after(machine, counted / ("memory.oom_control" if version == 1 else "memory.events"), "oom_kill")
    return Group(version, folder, least, _working_set(machine, counted, used_file, version), kills)


def _working_set(machine: Machine, folder: PurePosixPath, used_file: str, version: int) -> int:
    droppable = "total_inactive_file" if version == 1 else "inactive_file"
    used = machine.read_number(folder / used_file) or 0
    return max(0, used - _number_after(machine, folder / "memory.stat", droppable))


def _number_after(machine: Machine, path: PurePosixPath, name: str) -> int:
    match = re.search(rf"^{name} (\d+)$", machine.read(path) or "", re.MULTILINE)
    return int(match[1]) if match else 0


def control_groups(machine: Machine) -> Iterator[Finding]:
    """The caps of containers, job schedulers and services."""
    if machine.system != "linux":
        return
    found = groups(machine)
    if not any(group.limit for group in found):
        where = ", ".join(f"version {group.version}" for group in found) or "none with memory"
        yield Finding("OK", "control groups", f"no memory cap ({where})")
    total = _meminfo(machine).get("MemTotal", 0)
    for group in found:
        if group.limit is None:
            continue
        limit, place = group.limit
        text = f"version {group.version}: {size(limit)} in {place}, {size(group.used)} of it used"
        if total > limit:
            text += f"; the machine has {size(total)}, but this cap is what counts"
        if limit - group.used < _NEEDED:
            yield Finding(
                "WARN", "control groups", text, "ask for more: over the cap the kernel kills without a traceback (137)."
            )
        else:
            yield Finding("OK", "control groups", text)
    for group in found:
        if group.kills:
            text = (
                f"the kernel has killed {group.kills} process{'es' if group.kills > 1 else ''} here for want of memory"
            )
            yield Finding(
                "WARN", "control groups", text, "a run that ended in 137 without a traceback may be one of them."
            )


def pressure(machine: Machine) -> Iterator[Finding]:
    """Pressure stall information: how much of the time processes wait for memory."""
    if machine.system != "linux":
        return
    text = machine.read("/proc/pressure/memory")
    killers = sorted(_running(machine) & set(_PRESSURE_KILLERS))
    daemon = f"; {' and '.join(killers)} kills at high pressure" if killers else ""
    if text is None:
        yield Finding("OK", "memory pressure", f"this kernel does not tell (no /proc/pressure){daemon}")
        return
    shares = {kind: float(value) for kind, value in re.findall(r"^(some|full) .*?avg60=([\d.]+)", text, re.MULTILINE)}
    some, full = shares.get("some", 0.0), shares.get("full", 0.0)
    found = f"in the last minute something waited for memory {some:g} % of the time, everything {full:g} %{daemon}"
    if max(some, full) >= _PRESSED:
        yield Finding(
            "WARN", "memory pressure", found, "close something before a measurement, or before it is closed for you."
        )
    else:
        yield Finding("OK", "memory pressure", found)


def _running(machine: Machine) -> set[str]:
    names = set()
    for folder in machine.path("/proc").glob("[0-9]*"):
        names.add((machine.read(Path("/proc") / folder.name / "comm") or "").strip())
    return names
