"""The Linux calls that the sandbox needs and Python's standard library does not have.

Thin wrappers over libc with the errors turned into `OSError`. Nothing here decides anything.
"""

import ctypes
import errno
import os
import platform
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_NEWCGROUP = 0x02000000
CLONE_NEW_ANY = 0x7E020000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_BIND = 4096
MS_REC = 16384
MS_PRIVATE = 1 << 18

_MOUNT_ATTR = {"rdonly": 0x1, "nosuid": 0x2, "nodev": 0x4}
_AT_FDCWD = -100
_AT_RECURSIVE = 0x8000
_MNT_DETACH = 2

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
_SECUREBITS_LOCKED_NOROOT = 0b11  # NOROOT and its lock: no program gains capabilities for being run as uid 0

_SYSCALLS = {
    "x86_64": {"pivot_root": 155, "capset": 126},
    "aarch64": {"pivot_root": 41, "capset": 91},
}
# Calls that are newer than both have one number everywhere.
_NEW_SYSCALLS = {
    "mount_setattr": 442,
    "landlock_create_ruleset": 444,
    "landlock_add_rule": 445,
    "landlock_restrict_self": 446,
}
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


def machine() -> str:
    """The processor family as the kernel names it: ``x86_64`` or ``aarch64`` where the sandbox knows it."""
    return platform.machine()


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def system_call(name: str, *arguments: object) -> int:
    """A system call that libc has no function for."""
    numbers = _SYSCALLS.get(machine())
    if numbers is None:
        raise OSError(errno.ENOSYS, f"{name}: system call numbers of {machine()} are not known here")
    number = (numbers | _NEW_SYSCALLS)[name]
    return _check(_libc.syscall(ctypes.c_long(number), *arguments), name)


def _bytes(text: str | Path | None) -> bytes | None:
    return None if text is None else os.fsencode(text)


def unshare(flags: int) -> None:
    """Move this process into new namespaces (`unshare(2)`)."""
    _check(_libc.unshare(ctypes.c_int(flags)), "unshare")


def mount(source: str | Path | None, target: str | Path, kind: str | None, flags: int, options: str = "") -> None:
    """`mount(2)`."""
    result = _libc.mount(
        _bytes(source), _bytes(target), _bytes(kind), ctypes.c_ulong(flags), options.encode() if options else None
    )
    _check(result, f"mount {source or kind} on {target}")


def unmount_lazily(target: str | Path) -> None:
    """Detach a mount; it goes away when nothing uses it any more."""
    _check(_libc.umount2(_bytes(target), _MNT_DETACH), f"unmount {target}")


class _MountAttributes(ctypes.Structure):
    _fields_ = (
        ("attr_set", ctypes.c_uint64),
        ("attr_clr", ctypes.c_uint64),
        ("propagation", ctypes.c_uint64),
        ("userns_fd", ctypes.c_uint64),
    )


def restrict_mount(target: str | Path, *, rdonly: bool = True, nosuid: bool = True, nodev: bool = False) -> None:
    """Add flags to a mount and to all below it, keeping those that it has (`mount_setattr(2)`, Linux 5.12)."""
    wanted = {"rdonly": rdonly, "nosuid": nosuid, "nodev": nodev}
    attributes = _MountAttributes(attr_set=sum(_MOUNT_ATTR[name] for name, on in wanted.items() if on))
    system_call(
        "mount_setattr",
        ctypes.c_int(_AT_FDCWD),
        ctypes.c_char_p(_bytes(target)),
        ctypes.c_uint(_AT_RECURSIVE),
        ctypes.byref(attributes),
        ctypes.c_size_t(ctypes.sizeof(attributes)),
    )


def pivot_root(new_root: str | Path) -> None:
    """Make `new_root` the root of this mount namespace and let go of the old one."""
    os.chdir(new_root)
    system_call("pivot_root", ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    unmount_lazily(".")
    os.chdir("/")


def prctl(option: int, *values: int) -> int:
    """`prctl(2)` with up to four numbers."""
    numbers = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    return _check(_libc.prctl(ctypes.c_int(option), *numbers), f"prctl {option}")


def set_filter(program: ctypes.c_void_p) -> None:
    """Install a seccomp program (a pointer to a `sock_fprog`)."""
    result = _libc.prctl(ctypes.c_int(PR_SET_SECCOMP), ctypes.c_ulong(2), program, ctypes.c_ulong(0), ctypes.c_ulong(0))
    _check(result, "seccomp")


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _CapabilitySets(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def drop_capabilities() -> None:
    """Give up every capability for good: the bounding, ambient, inheritable, permitted and effective sets."""
    close_capabilities()
    clear_capabilities()


def close_capabilities() -> None:
    """Let no program, whoever owns it, give a capability again. Takes a privilege."""
    for number in range(_LAST_CAPABILITY + 1):
        try:
            prctl(PR_CAPBSET_DROP, number)
        except OSError as error:
            if error.errno != errno.EINVAL:  # EINVAL: this kernel has no capability of that number
                raise
    prctl(PR_SET_SECUREBITS, _SECUREBITS_LOCKED_NOROOT)


def clear_capabilities() -> None:
    """Give up the capabilities that this process has."""
    prctl(PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CapabilityHeader(version=0x20080522, pid=0)
    system_call("capset", ctypes.byref(header), (_CapabilitySets * 2)())


def die_with_parent(signal_number: int = 9) -> None:
    """Have the kernel send this process a signal when its parent ends. Forgotten when the user id changes."""
    prctl(PR_SET_PDEATHSIG, signal_number)
