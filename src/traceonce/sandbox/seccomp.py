"""A seccomp filter: the system calls that student code has no use for and an attacker would.

A list of what is refused, not of what is allowed: XLA's compiler and thread pools use too much of the rest for a list of
allowed calls to stay right. The namespaces, the empty capability sets and the read-only root do not depend on it; it
closes what they leave open (nested namespaces, tracing, kernel keys, sockets that no network namespace covers).
"""

import ctypes
import errno

from traceonce.sandbox import linux

# name: (x86_64, aarch64); -1 where the architecture has no such call
_REFUSED: dict[str, tuple[int, int]] = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_tree": (428, 428),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "unshare": (272, 97),
    "setns": (308, 268),
    "execve": (59, 221),
    "execveat": (322, 281),
    "keyctl": (250, 219),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "fanotify_init": (300, 262),
    "mknod": (133, -1),
    "mknodat": (259, 33),
    "personality": (135, 92),
    "iopl": (172, -1),
    "ioperm": (173, -1),
    "modify_ldt": (154, -1),
    "uselib": (134, -1),
    "vhangup": (153, 58),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "lookup_dcookie": (212, 18),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # Memory that no watchdog sees because no process maps it.
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
}
# Where there are no namespaces: what reaches other processes of the same user, and what files that cannot be opened still allow.
_REFUSED_IN_SHARED_VIEW: dict[str, tuple[int, int]] = {
    # A Landlock domain refuses to open a file for writing, and not these.
    "chmod": (90, -1),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, -1),
    "fchown": (93, 55),
    "lchown": (94, -1),
    "fchownat": (260, 54),
    "utime": (132, -1),
    "utimes": (235, -1),
    "futimesat": (261, -1),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    "flock": (73, 32),
    "inotify_init": (253, -1),
    "inotify_init1": (294, 26),
    "statmount": (457, 457),
    "listmount": (458, 458),
    "open_tree_attr": (467, 467),
    # Other processes of the same user, and what they share.
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setparam": (142, 118),
    "sched_setattr": (314, 274),
    "setpriority": (141, 140),
    "ioprio_set": (251, 30),
    "process_mrelease": (448, 448),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_unlink": (241, 181),
    # Sockets: there is no network namespace, and local ones lead to the user's own services.
    "socket": (41, 198),
    "connect": (42, 203),
    "bind": (49, 200),
    "listen": (50, 201),
    "accept": (43, 202),
    "accept4": (288, 242),
}
_PRLIMIT = (302, 261)
_SOCKETPAIR = (53, 199)
_CLONE = (56, 220)
_CLONE3 = (435, 435)
_SOCKET = (41, 198)

_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
_AF_UNIX = 1

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_JUMP_GREATER_EQUAL = 0x35
_JUMP_ANY_BIT = 0x45
_RETURN = 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000
_KILL_PROCESS = 0x80000000
_AND = 0x54
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_FIRST_ARGUMENT, _OFFSET_SECOND_ARGUMENT = 0, 4, 16, 24
_SOCKET_KIND, _STREAM, _SEQPACKET = 0xF, 1, 5
_X32_BIT = 0x40000000


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_uint16), ("jt", ctypes.c_uint8), ("jf", ctypes.c_uint8), ("k", ctypes.c_uint32))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.POINTER(_Instruction)))


def build(machine: str, *, strict: bool = False) -> list[tuple[int, int, int, int]]:
    """The filter's instructions `(code, jump if true, jump if false, constant)` for a processor family.

    `strict` also refuses what namespaces would make harmless.

    **Raises**: `OSError` where the family is not known.
    """
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no seccomp filter is written for {machine}")
    column, architecture = _ARCHITECTURES[machine]
    program: list[tuple[int, int, int, int]] = [
        (_LOAD_WORD, 0, 0, _OFFSET_ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL_PROCESS),  # the numbers below mean other calls in another architecture's table
        (_LOAD_WORD, 0, 0, _OFFSET_NUMBER),
        (_JUMP_GREATER_EQUAL, 0, 1, _X32_BIT),
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
    ]
    for numbers in (_REFUSED | (_REFUSED_IN_SHARED_VIEW if strict else {})).values():
        if numbers[column] >= 0:
            program += [(_JUMP_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    if strict:
        program += [
            # Limits of the caller alone, never of another process.
            (_JUMP_EQUAL, 0, 4, _PRLIMIT[column]),
            (_LOAD_WORD, 0, 0, _OFFSET_FIRST_ARGUMENT),
            (_JUMP_EQUAL, 0, 1, 0),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE | errno.EPERM),
            # A datagram socket, even one of a pair, can be pointed at an address.
            (_JUMP_EQUAL, 0, 6, _SOCKETPAIR[column]),
            (_LOAD_WORD, 0, 0, _OFFSET_SECOND_ARGUMENT),
            (_AND, 0, 0, _SOCKET_KIND),
            (_JUMP_EQUAL, 1, 0, _STREAM),
            (_JUMP_EQUAL, 0, 1, _SEQPACKET),
            (_RETURN, 0, 0, _ALLOW),
            (_RETURN, 0, 0, _REFUSE | errno.EACCES),
        ]
    # Threads are made with clone3, whose flags a filter cannot read; glibc falls back to clone on ENOSYS.
    program += [(_JUMP_EQUAL, 0, 1, _CLONE3[column]), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]
    program += [
        (_JUMP_EQUAL, 0, 3, _CLONE[column]),
        (_LOAD_WORD, 0, 0, _OFFSET_FIRST_ARGUMENT),
        (_JUMP_ANY_BIT, 0, 4, linux.CLONE_NEW_ANY),
        (_RETURN, 0, 0, _REFUSE | errno.EPERM),
        # Only local sockets: some families (vsock for one) are not covered by a network namespace.
        (_JUMP_EQUAL, 0, 2, _SOCKET[column]),
        (_LOAD_WORD, 0, 0, _OFFSET_FIRST_ARGUMENT),
        (_JUMP_EQUAL, 0, 1, _AF_UNIX),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _REFUSE | errno.EACCES),
    ]
    return program


def install(*, strict: bool = False) -> None:
    """Refuse the listed calls in this process and in all it starts, for good; `strict` as in `build`. Needs no_new_privs.

    **Raises**: `OSError` where the kernel or the processor family has no such filter.
    """
    instructions = build(linux.machine(), strict=strict)
    array = (_Instruction * len(instructions))(*(_Instruction(*parts) for parts in instructions))
    program = _Program(len(instructions), array)
    linux.set_filter(ctypes.cast(ctypes.byref(program), ctypes.c_void_p))
