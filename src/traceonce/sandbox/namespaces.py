"""The namespaces tier: user, mount, process, network, IPC and host-name namespaces of Linux.

Two steps. A zygote calls `enter` once: it gets namespaces of its own and the read-only root. For each submission it calls
`fork_sandboxed`, which makes three processes::

    zygote ── warden ── init (process 1 of the new process namespace) ── the child that runs student code

The warden exists because a new process namespace holds only what is forked after it was made. The init reaps, reports how
the child ended, and ends; with it the kernel kills whatever is left in the namespace. Each dies with its parent, so that
nothing survives the supervisor.

It works as root and as an ordinary user. As root, student code runs as an id that owns nothing.
"""

import os
import select
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from traceonce.sandbox import linux, seccomp
from traceonce.sandbox.guard import Mapped, close_all_but, detach, fork_apart, guard_child, hold, set_rlimits
from traceonce.sandbox.limits import Limits
from traceonce.sandbox.root import SCRATCH, SHARED_MEMORY, enter_root, environment_contents

STUDENT = 1000
"""User and group id of student code, as it sees itself."""

NOBODY = 65534


def enter(extra: Mapping[Path, Path]) -> None:
    """Move this process into namespaces of its own and into the read-only root; `extra` as in `root.enter_root`.

    **Raises**: `OSError` where the kernel refuses; its text names the step.
    """
    uid, gid = os.geteuid(), os.getegid()
    user_map, group_map, by_root = _id_maps(uid, gid)
    namespaces = linux.CLONE_NEWUSER | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC | linux.CLONE_NEWUTS
    if by_root:
        _unshare_mapped_from_outside(namespaces, user_map, group_map)
    else:
        linux.unshare(namespaces)
        _map_own_ids(user_map, group_map)
    enter_root(environment_contents(), extra)


def _id_maps(uid: int, gid: int) -> tuple[str, str, bool]:
    """User map, group map, and whether they are root's, which a process outside must write.

    Root stays root inside, which sets up the root file system, and student code gets `NOBODY`. Anybody else has only the
    one id to give. Root of a container that has no `NOBODY` is like anybody else: it is no real root.
    """
    if uid == 0 and has_id("uid", NOBODY) and has_id("gid", NOBODY):
        both = f"0 0 1\n{STUDENT} {NOBODY} 1\n"
        return both, both, True
    return f"{STUDENT} {uid} 1\n", f"{STUDENT} {gid} 1\n", False


def has_id(kind: str, number: int) -> bool:
    """Whether there is such an id here: a container may have few. `kind` is ``uid`` or ``gid``."""
    rows = [[int(part) for part in line.split()] for line in Path(f"/proc/self/{kind}_map").read_text().splitlines()]
    return any(first <= number < first + count for first, _, count in rows)


def _unshare_mapped_from_outside(namespaces: int, user_map: str, group_map: str) -> None:
    """`unshare`, with the maps written by a helper that stays outside: a map of two ids takes a privilege there."""
    ready_read, ready_write = os.pipe()
    parent = os.getpid()
    helper = os.fork()
    if helper == 0:
        os.close(ready_write)
        status = 1
        try:
            if os.read(ready_read, 1):
                Path(f"/proc/{parent}/uid_map").write_text(user_map)
                Path(f"/proc/{parent}/gid_map").write_text(group_map)
                status = 0
        finally:
            os._exit(status)
    os.close(ready_read)
    try:
        linux.unshare(namespaces)
        os.write(ready_write, b"m")
    finally:
        os.close(ready_write)
        _, status = os.waitpid(helper, 0)
    if status != 0:
        raise PermissionError(1, "the ids of a user namespace could not be mapped")


def _map_own_ids(user_map: str, group_map: str) -> None:
    """Map one's own id from inside; the kernel wants `setgroups` denied first."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(user_map)
    Path("/proc/self/gid_map").write_text(group_map)


def fork_sandboxed(run: Callable[[], None], *, keep: tuple[int, ...], notice: socket.socket, limits: Limits) -> int:
    """Fork a child that calls `run` with nothing but the descriptors in `keep`, in namespaces of its own.

    Returns the warden's process id, to be waited for; the caller never runs `run`. On `notice` the supervisor gets two
    datagrams: first a `pidfd` of the init (``b"init"`` with the descriptor), last how the child ended (``b"end N S"`` with N as
    in `os.waitpid` and S the seconds of processor time that the sandbox used). When set-up fails the only datagram is ``b"failed ..."`` with the reason.
    """
    return fork_apart(lambda: _be_warden(run, keep, notice, limits), notice)


def _be_warden(run: Callable[[], None], keep: tuple[int, ...], notice: socket.socket, limits: Limits) -> None:
    linux.die_with_parent()
    close_all_but((*keep, notice.fileno()))
    # The kernel ends a submission before anything else of the machine when memory runs out.
    Path("/proc/self/oom_score_adj").write_text("1000")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(STUDENT, STUDENT, STUDENT)
        os.setresuid(STUDENT, STUDENT, STUDENT)
        linux.prctl(linux.PR_SET_DUMPABLE, 1)  # a change of id clears it, and then /proc/self belongs to root
        linux.die_with_parent()
    user, group = os.geteuid(), os.getegid()
    # A user namespace for each child: the count of its processes starts at zero.
    linux.unshare(
        linux.CLONE_NEWUSER | linux.CLONE_NEWPID | linux.CLONE_NEWNS | linux.CLONE_NEWNET | linux.CLONE_NEWIPC
    )
    _map_own_ids(f"{user} {user} 1\n", f"{group} {group} 1\n")
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("tmpfs", SCRATCH, "tmpfs", flags, f"mode=1777,size={limits.tmp_mb}m,nr_inodes=4096")
    linux.mount("tmpfs", SHARED_MEMORY, "tmpfs", flags, f"mode=1777,size={limits.shm_mb}m,nr_inodes=256")
    warden_alive = os.pidfd_open(os.getpid())
    init = fork_apart(lambda: _be_init(run, keep, notice, limits, warden_alive), notice)
    handle = os.pidfd_open(init)
    socket.send_fds(notice, [b"init"], [handle])
    close_all_but(())
    os.waitpid(init, 0)
    os._exit(0)


def _be_init(
    run: Callable[[], None], keep: tuple[int, ...], notice: socket.socket, limits: Limits, warden_alive: int
) -> None:
    if os.getpid() != 1:  # what follows signals "every process", and must mean those of its own namespace
        raise OSError("the process namespace is not new")
    hold()
    linux.die_with_parent()
    if select.select([warden_alive], [], [], 0)[0]:
        os._exit(1)
    os.close(warden_alive)
    # Read-only and of this namespace: only the processes of this submission are in it.
    linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC | linux.MS_RDONLY)
    guard_child(run, lambda: confine((*keep, notice.fileno()), limits), notice, announce=False)


def confine(
    keep: tuple[int, ...], limits: Limits, drop_capabilities: Callable[[], None] = linux.drop_capabilities
) -> None:
    """The last step before student code: no descriptors, no privileges, no way to get any, and limits on the rest."""
    linux.die_with_parent()
    detach(keep)
    os.chdir(SCRATCH)
    for name, value in (("HOME", SCRATCH), ("TMPDIR", SCRATCH), ("USER", "student")):
        os.environ[name] = value
    set_rlimits(limits, mapped=Mapped.now())
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    drop_capabilities()
    seccomp.install()
