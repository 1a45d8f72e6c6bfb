"""Landlock: rules that a process sets for itself and for all that it starts, without any privilege.

Only what the sandbox needs of it: files that may be read, no TCP, and signals and abstract sockets kept within the domain.
"""

import ctypes
import os
import stat
from collections.abc import Iterable
from pathlib import Path

from traceonce.sandbox import linux

NEEDED_ABI = 6
"""The first version that keeps signals within a domain (Linux 6.12). Without that, student code could end whatever else runs as its user."""

_WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 1, 1 << 2, 1 << 3
_EVERY_FILE_RIGHT = (
    1 << 16
) - 1  # all of version 6: reading, writing, executing, making, removing, linking, truncating, devices
_EVERY_NET_RIGHT = 0b11
_EVERY_SCOPE = 0b11
_ASK_VERSION = 1
_PATH_BENEATH = 1


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("rights", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """The version of the kernel's Landlock; 0 where there is none, or where it is switched off."""
    try:
        return linux.system_call("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION))
    except OSError:
        return 0


def restrict(readable: Iterable[Path], writable_devices: Iterable[Path]) -> None:
    """Enter a domain of one's own: only these can be read or written to, no TCP, and no signal or abstract socket leaves it.

    Needs no_new_privs. What is started later is in the domain, and can enter a narrower one, never a wider.

    **Raises**: `OSError` where the kernel refuses.
    """
    wanted = _Ruleset(_EVERY_FILE_RIGHT, _EVERY_NET_RIGHT, _EVERY_SCOPE)
    ruleset = linux.system_call(
        "landlock_create_ruleset", ctypes.byref(wanted), ctypes.c_size_t(ctypes.sizeof(wanted)), ctypes.c_uint32(0)
    )
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE)
        for path in writable_devices:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
        linux.system_call("landlock_restrict_self", ctypes.c_int(ruleset), ctypes.c_uint32(0))
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: Path, rights: int) -> None:
    parent = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if stat.S_ISDIR(os.fstat(parent).st_mode):
            rights |= _READ_DIR
        rule = _PathBeneath(rights, parent)
        linux.system_call(
            "landlock_add_rule",
            ctypes.c_int(ruleset),
            ctypes.c_int(_PATH_BENEATH),
            ctypes.byref(rule),
            ctypes.c_uint32(0),
        )
    finally:
        os.close(parent)
