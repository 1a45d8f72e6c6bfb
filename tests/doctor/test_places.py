"""The compile cache, the progress file, the desk, and namespaces."""

import os
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from tests.doctor.conftest import NOW, with_environ
from traceonce.doctor import places
from traceonce.doctor.machine import Ran


def aged(path, **ago):
    when = (NOW - timedelta(**ago)).timestamp()
    os.utime(path, (when, when))


@pytest.fixture
def cached(healthy):
    return with_environ(healthy, JAX_COMPILATION_CACHE_DIR="/cache")


@pytest.fixture
def unwritable(monkeypatch):
    """Make a folder unwritable for the checks, also for root, who may write everywhere."""
    refused: list[str] = []
    real = os.access

    def access(path, mode):
        return False if mode & os.W_OK and str(path).startswith(tuple(refused)) else real(path, mode)

    monkeypatch.setattr(os, "access", access)
    return refused


def test_no_cache_is_ok_and_says_what_that_means(healthy):
    (finding,) = places.compile_cache(healthy)
    assert (finding.level, "compiles for itself" in finding.found) == ("OK", True)


def test_a_cache_is_counted_and_dated(cached, write):
    aged(write("/cache/jit_step-1-cache", "x" * 2048), days=3)
    aged(write("/cache/jit_step-1-atime", "later"), days=0)
    aged(write("/cache/deeper/jit_loss-2-cache", "x" * 1024), hours=5)
    (finding,) = places.compile_cache(cached)
    assert finding.level == "OK"
    assert finding.found == "/cache: 2 entries, 3 KiB, the oldest 3 days old, the newest 5 hours"


def test_entries_older_than_the_installed_jaxlib_warn(cached, write):
    aged(write("/cache/new-cache", "x"), days=1)
    aged(write("/cache/old-cache", "x"), days=11)
    (finding,) = places.compile_cache(cached)
    assert finding.level == "WARN"
    assert "1 older than the installed jaxlib" in finding.found


def test_a_cache_that_anybody_may_write_warns(cached, write, tmp_path):
    aged(write("/cache/new-cache", "x"), days=1)
    (tmp_path / "cache").chmod(0o777)
    (finding,) = places.compile_cache(cached)
    assert (finding.level, "anybody" in finding.found) == ("WARN", True)


def test_a_cache_that_is_switched_off_warns(cached):
    (finding,) = places.compile_cache(with_environ(cached, JAX_ENABLE_COMPILATION_CACHE="false"))
    assert (finding.level, "turns it off" in finding.found) == ("WARN", True)


def test_a_cache_that_does_not_exist_is_judged_by_whether_it_can_be_made(cached, tmp_path, unwritable):
    (finding,) = places.compile_cache(cached)
    assert (finding.level, "JAX makes it" in finding.found) == ("OK", True)
    unwritable.append(str(tmp_path))
    (finding,) = places.compile_cache(cached)
    assert (finding.level, "cannot be made" in finding.found) == ("WARN", True)


def test_a_cache_that_cannot_be_written_warns(cached, write, tmp_path, unwritable):
    write("/cache/a-cache", "x")
    unwritable.append(str(tmp_path / "cache"))
    (finding,) = places.compile_cache(cached)
    assert (finding.level, "not writable" in finding.found) == ("WARN", True)


def test_a_remote_cache_is_not_looked_at(healthy):
    (finding,) = places.compile_cache(with_environ(healthy, JAX_COMPILATION_CACHE_DIR="gs://bucket/cache"))
    assert (finding.level, "not looked at" in finding.found) == ("OK", True)


def test_a_progress_file_in_a_writable_folder_is_ok(healthy, write):
    (before,) = places.progress_file(healthy)
    write("/home/learner/progress.json", "{}")
    (after,) = places.progress_file(healthy)
    assert (before.level, after.level) == ("OK", "OK")
    assert "first prediction" in before.found
    assert "is there" in after.found


def test_a_progress_file_that_cannot_be_written_warns(healthy, tmp_path, unwritable):
    unwritable.append(str(tmp_path / "home"))
    (finding,) = places.progress_file(healthy)
    assert (finding.level, "TRACEONCE_PROGRESS" in finding.advice) == ("WARN", True)


def test_a_folder_where_the_progress_file_should_be_warns(healthy, tmp_path):
    (tmp_path / "home/learner/progress.json").mkdir()
    assert [finding.level for finding in places.progress_file(healthy)] == ["WARN"]


def test_the_usual_progress_file_is_the_one_that_lessons_write(healthy, tmp_path, monkeypatch):
    from traceonce.show.ledger import progress_path

    monkeypatch.delenv("TRACEONCE_PROGRESS", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/home/learner/data")
    (finding,) = places.progress_file(replace(healthy, environ={}))
    assert str(tmp_path / str(progress_path()).lstrip("/")) in finding.found


def test_the_desk_is_looked_at_in_the_folder_of_the_course_only(healthy, tmp_path, unwritable):
    (elsewhere,) = places.desk(healthy)
    assert (elsewhere.level, "no desk" in elsewhere.found) == ("OK", True)
    (tmp_path / "home/learner/course").mkdir()
    (finding,) = places.desk(healthy)
    assert finding.found.startswith("writable")
    unwritable.append(str(tmp_path / "home/learner"))
    assert [finding.level for finding in places.desk(healthy)] == ["FAIL"]


def test_a_file_in_the_place_of_the_desk_fails(healthy, write):
    write("/home/learner/course/index.ipynb", "{}")
    write("/home/learner/work", "a file")
    assert [finding.level for finding in places.desk(healthy)] == ["FAIL"]


def test_a_full_disk_warns(healthy, tmp_path, monkeypatch):
    (tmp_path / "home/learner/course").mkdir()
    monkeypatch.setattr(places.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 2**28})())
    (finding,) = places.desk(healthy)
    assert (finding.level, "256 MiB" in finding.found) == ("WARN", True)


@pytest.mark.parametrize(
    ("file", "value", "remedy"),
    [
        ("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_restrict_unprivileged_userns=0"),
        ("/proc/sys/kernel/unprivileged_userns_clone", "0", "unprivileged_userns_clone=1"),
        ("/proc/sys/user/max_user_namespaces", "0", "max_user_namespaces="),
        ("/proc/sys/user/max_user_namespaces", "500", "in a container"),
    ],
)
def test_refused_namespaces_warn_with_the_switch_that_refuses_them(healthy, children, write, file, value, remedy):
    write(file, value)
    children.answers["namespaces"] = Ran(1, "", "Traceback\nPermissionError: [Errno 1] unshare\n")
    (finding,) = places.namespaces(healthy)
    assert finding.level == "WARN"
    assert "PermissionError: [Errno 1] unshare" in finding.found
    assert remedy in finding.advice


def test_namespaces_that_work_are_ok_and_other_systems_warn(healthy):
    assert [finding.level for finding in places.namespaces(healthy)] == ["OK"]
    (finding,) = places.namespaces(replace(healthy, system="darwin"))
    assert (finding.level, "Linux" in finding.found) == ("WARN", True)


def test_relative_folders_start_where_the_command_was_given(healthy, write):
    write("/home/learner/mine/a-cache", "x")
    (finding,) = places.compile_cache(with_environ(healthy, JAX_COMPILATION_CACHE_DIR="mine"))
    assert finding.found.startswith("mine: 1 entry")
    assert healthy.here == Path("/home/learner")
