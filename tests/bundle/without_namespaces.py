"""Run a program as most containers do: what makes namespaces is refused, by a filter that is inherited.

python without_namespaces.py PROGRAM [ARGUMENTS]
"""

import ctypes
import errno
import os
import sys

from traceonce.sandbox import linux, seccomp


def refuse_unshare():
    column, architecture = seccomp._ARCHITECTURES[linux.machine()]
    parts = [
        (seccomp._LOAD_WORD, 0, 0, seccomp._OFFSET_ARCHITECTURE),
        (seccomp._JUMP_EQUAL, 1, 0, architecture),
        (seccomp._RETURN, 0, 0, seccomp._KILL_PROCESS),
        (seccomp._LOAD_WORD, 0, 0, seccomp._OFFSET_NUMBER),
        (seccomp._JUMP_EQUAL, 0, 1, seccomp._REFUSED["unshare"][column]),
        (seccomp._RETURN, 0, 0, seccomp._REFUSE | errno.EPERM),
        (seccomp._RETURN, 0, 0, seccomp._ALLOW),
    ]
    array = (seccomp._Instruction * len(parts))(*(seccomp._Instruction(*part) for part in parts))
    program = seccomp._Program(len(parts), array)
    linux.prctl(linux.PR_SET_NO_NEW_PRIVS, 1)
    linux.set_filter(ctypes.cast(ctypes.byref(program), ctypes.c_void_p))


if __name__ == "__main__":
    refuse_unshare()
    os.execv(sys.argv[1], sys.argv[1:])
