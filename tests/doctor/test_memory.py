"""Caps and pressure, on made-up /proc and /sys trees."""

from dataclasses import replace

import pytest

from tests.doctor.conftest import CGROUP1_MOUNT, CGROUP2_MOUNT, GIB, LIMITS, MEMINFO, only
from traceonce.doctor import memory


def levels(findings):
    return [finding.level for finding in findings]


def test_a_healthy_machine_has_nothing_but_ok(healthy):
    checks = (memory.machine_memory, memory.process_limits, memory.control_groups, memory.pressure)
    findings = [finding for check in checks for finding in check(healthy)]
    assert levels(findings) == ["OK"] * 4
    assert findings[0].found == "16.0 GiB, 12.0 GiB available, no swap"


def test_little_free_memory_warns(healthy, write):
    write("/proc/meminfo", MEMINFO.format(total=16 * 2**20, free=2**20, swap=2**20, limit=0))
    (finding,) = memory.machine_memory(healthy)
    assert (finding.level, finding.found) == ("WARN", "16.0 GiB, 1.0 GiB available, 1.0 GiB swap")


def test_strict_overcommit_warns(healthy, write):
    write("/proc/sys/vm/overcommit_memory", "2\n")
    (finding,) = only(memory.machine_memory(healthy), "overcommit")
    assert finding.level == "WARN"
    assert "8.0 GiB" in finding.found


@pytest.mark.parametrize(
    ("space", "data", "processes", "expected"),
    [
        (2 * GIB, "unlimited", "96365", [("WARN", "address space is limited to 2.0 GiB")]),
        (8 * GIB, "unlimited", "96365", [("OK", "address space is limited to 8.0 GiB")]),
        ("unlimited", 3 * GIB, "96365", [("WARN", "data size is limited to 3.0 GiB")]),
        ("unlimited", "unlimited", "64", [("WARN", "processes is limited to 64")]),
        (GIB, GIB, "unlimited", [("WARN", "address space"), ("WARN", "data size")]),
    ],
)
def test_limits_of_the_process_are_named_with_their_size(healthy, write, space, data, processes, expected):
    write("/proc/self/limits", LIMITS.format(space=space, data=data, processes=processes))
    findings = list(memory.process_limits(healthy))
    assert levels(findings) == [level for level, _ in expected]
    assert all(words in finding.found for finding, (_, words) in zip(findings, expected, strict=True))


def test_without_proc_the_limits_come_from_the_system(healthy, tmp_path, monkeypatch):
    import resource

    (tmp_path / "proc/self/limits").unlink()
    monkeypatch.setattr(
        resource, "getrlimit", lambda kind: (GIB if kind == resource.RLIMIT_AS else resource.RLIM_INFINITY, 0)
    )
    (finding,) = memory.process_limits(healthy)
    assert (finding.level, "1.0 GiB" in finding.found) == ("WARN", True)


def test_the_least_cap_on_the_way_up_counts_in_version_2(healthy, write):
    write("/proc/self/cgroup", "0::/jobs.slice/job-7/step\n")
    top = "/sys/fs/cgroup/jobs.slice"
    write(f"{top}/memory.max", str(4 * GIB))
    write(f"{top}/memory.current", str(3 * GIB))
    write(f"{top}/memory.stat", f"anon 5\ninactive_file {2 * GIB}\n")
    write(f"{top}/memory.events", "low 0\noom 3\noom_kill 2\n")
    write(f"{top}/job-7/memory.max", str(8 * GIB))
    write(f"{top}/job-7/step/memory.max", "max\n")
    write(f"{top}/job-7/step/memory.current", str(GIB))
    cap, kills = memory.control_groups(healthy)
    assert cap.level == "OK"
    assert f"version 2: 4.0 GiB in {top}, 1.0 GiB of it used" in cap.found
    assert "the machine has 16.0 GiB" in cap.found
    assert (kills.level, "killed 2 processes" in kills.found) == ("WARN", True)


def test_a_container_with_a_namespace_of_its_own_finds_its_cap_at_the_mount(healthy, write):
    write("/sys/fs/cgroup/memory.max", str(3 * GIB))
    write("/sys/fs/cgroup/memory.current", str(2 * GIB))
    (finding,) = memory.control_groups(healthy)
    assert finding.level == "WARN"
    assert "3.0 GiB in /sys/fs/cgroup, 2.0 GiB of it used" in finding.found
    assert "137" in finding.advice


def test_a_group_that_is_not_shown_in_this_mount_falls_back_to_the_mount(healthy, write):
    write("/proc/self/cgroup", "0::/../../other\n")
    write("/sys/fs/cgroup/memory.max", str(5 * GIB))
    (finding,) = memory.control_groups(healthy)
    assert "5.0 GiB in /sys/fs/cgroup," in finding.found


def test_version_1_with_a_bind_mounted_part_of_the_hierarchy(healthy, write):
    write("/proc/self/cgroup", "5:memory:/docker/abc\n3:cpu:/docker/abc\n0::/\n")
    write("/proc/self/mountinfo", CGROUP1_MOUNT.format(root="/docker/abc"))
    write("/sys/fs/cgroup/memory/memory.limit_in_bytes", str(6 * GIB))
    write("/sys/fs/cgroup/memory/memory.usage_in_bytes", str(3 * GIB))
    write("/sys/fs/cgroup/memory/memory.stat", f"total_inactive_file {2 * GIB}\n")
    write("/sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    cap, kills = memory.control_groups(healthy)
    assert "version 1: 6.0 GiB in /sys/fs/cgroup/memory, 1.0 GiB of it used" in cap.found
    assert "killed 1 process here" in kills.found


def test_a_group_below_the_mounted_part_is_found_in_it(healthy, write):
    write("/proc/self/cgroup", "0::/pod/job/step\n")
    write("/proc/self/mountinfo", CGROUP2_MOUNT.format(root="/pod/job"))
    write("/sys/fs/cgroup/step/memory.max", str(7 * GIB))
    (finding,) = memory.control_groups(healthy)
    assert "7.0 GiB in /sys/fs/cgroup/step," in finding.found


def test_version_1_writes_no_limit_as_a_huge_number(healthy, write):
    write("/proc/self/cgroup", "4:memory:/user/x\n0::/\n")
    write("/proc/self/mountinfo", CGROUP1_MOUNT.format(root="/") + CGROUP2_MOUNT.format(root="/"))
    for folder in ("", "/user", "/user/x"):
        write(f"/sys/fs/cgroup/memory{folder}/memory.limit_in_bytes", "9223372036854771712")
        write(f"/sys/fs/cgroup/memory{folder}/memory.usage_in_bytes", "5")
    (finding,) = memory.control_groups(healthy)
    assert (finding.level, finding.found) == ("OK", "no memory cap (version 1)")


def test_a_mount_point_with_a_space_in_its_name_is_found(healthy, write):
    write("/proc/self/mountinfo", "29 23 0:26 / /my\\040cgroup rw - cgroup2 cgroup2 rw\n")
    write("/my cgroup/memory.max", str(9 * GIB))
    (finding,) = memory.control_groups(healthy)
    assert "9.0 GiB in /my cgroup" in finding.found


@pytest.mark.parametrize(
    ("some", "full", "level"), [(0.0, 0.0, "OK"), (9.9, 1.0, "OK"), (10.0, 0.0, "WARN"), (60.5, 30.25, "WARN")]
)
def test_pressure_warns_from_a_tenth_of_the_time(healthy, write, some, full, level):
    line = "{} avg10=99.0 avg60={:.2f} avg300=0.00 total=1\n"
    write("/proc/pressure/memory", line.format("some", some) + line.format("full", full))
    (finding,) = memory.pressure(healthy)
    assert finding.level == level
    assert f"{some:g} %" in finding.found
    assert f"{full:g} %" in finding.found


def test_a_daemon_that_kills_at_pressure_is_named(healthy, write):
    write("/proc/812/comm", "systemd-oomd\n")
    (finding,) = memory.pressure(healthy)
    assert "systemd-oomd" in finding.found


def test_a_kernel_without_pressure_says_so(healthy, tmp_path):
    (tmp_path / "proc/pressure/memory").unlink()
    (finding,) = memory.pressure(healthy)
    assert (finding.level, "does not tell" in finding.found) == ("OK", True)


def test_macos_has_memory_and_no_control_groups(healthy, tmp_path):
    (tmp_path / "proc/meminfo").unlink()
    machine = replace(healthy, system="darwin")
    assert list(memory.control_groups(machine)) == []
    assert list(memory.pressure(machine)) == []
    assert "GiB" in next(iter(memory.machine_memory(machine))).found
