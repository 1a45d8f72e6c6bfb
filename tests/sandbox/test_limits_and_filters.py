import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from traceonce.sandbox import guard, namespaces, seccomp, watch
from traceonce.sandbox.handle import Sandbox, SandboxRefused
from traceonce.sandbox.limits import Limits
from traceonce.sandbox.root import environment_contents


def test_limits_survive_their_own_json():
    limits = Limits(seconds=3.5, memory_mb=700)
    assert Limits.from_json(limits.to_json()) == limits


@pytest.mark.parametrize(("seconds", "call"), [(60, 10), (3, 1), (600, 100)])
def test_one_call_may_take_a_sixth_of_the_time_and_at_least_a_second(seconds, call):
    assert Limits.for_submission(seconds=seconds, memory_mb=1000).call_seconds == call


def run_filter(program, number, argument=0, architecture=None, second=0):
    """What a seccomp program answers: the few instructions that it is made of, interpreted."""
    words = {0: number, 4: architecture, 16: argument, 24: second}
    accumulator = position = 0
    while True:
        code, if_true, if_false, constant = program[position]
        position += 1
        if code == 0x20:
            accumulator = words[constant]
        elif code == 0x54:
            accumulator &= constant
        elif code == 0x06:
            return constant
        else:
            test = {0x15: accumulator == constant, 0x35: accumulator >= constant, 0x45: bool(accumulator & constant)}
            position += if_true if test[code] else if_false


ALLOW, KILL = 0x7FFF0000, 0x80000000
X86, ARM = 0xC000003E, 0xC00000B7


@pytest.mark.parametrize(
    ("number", "argument", "allowed"),
    [
        (0, 0, True),  # read
        (9, 0, True),  # mmap
        (57, 0, True),  # fork
        (56, 0x3D0F00, True),  # clone of a thread
        (56, 0x10000000, False),  # clone into a user namespace
        (41, 1, True),  # a local socket
        (41, 2, False),  # an internet socket
        (41, 40, False),  # a socket to the host of a virtual machine
        (435, 0, False),  # clone3
        (272, 0, False),  # unshare
        (101, 0, False),  # ptrace
        (59, 0, False),  # execve
        (425, 0, False),  # io_uring_setup
        (0x40000000 | 9, 0, False),  # the x32 table
    ],
)
def test_the_filter_refuses_what_it_lists_and_allows_the_rest(number, argument, allowed):
    answer = run_filter(seccomp.build("x86_64"), number, argument, X86)
    assert (answer == ALLOW) is allowed


@pytest.mark.parametrize(
    ("number", "arguments", "allowed"),
    [
        (41, (1, 1), False),  # a local socket
        (42, (0, 0), False),  # connect
        (53, (1, 1), True),  # a pair of streams
        (53, (1, 0o2000000 | 5), True),  # a pair of packet sockets, closed at an exec
        (53, (1, 2), False),  # a pair of datagram sockets, which can be pointed elsewhere
        (53, (1, 0o4000 | 3), False),
        (302, (0, 0), True),  # one's own limits
        (302, (77, 0), False),  # another process's
        (90, (0, 0), False),  # chmod
        (62, (0, 0), True),  # kill, which Landlock keeps within its domain
        (435, (0, 0), False),  # clone3
        (56, (0x3D0F00, 0), True),  # clone of a thread
        (0, (0, 0), True),  # read
    ],
)
def test_the_strict_filter_also_refuses_what_namespaces_would_make_harmless(number, arguments, allowed):
    answer = run_filter(seccomp.build("x86_64", strict=True), number, arguments[0], X86, arguments[1])
    assert (answer == ALLOW) is allowed
    on_arm = {53: 199, 302: 261, 62: 129, 56: 220, 0: 63, 41: 198, 42: 203, 435: 435, 90: 53}[number]
    answer = run_filter(seccomp.build("aarch64", strict=True), on_arm, arguments[0], ARM, arguments[1])
    assert (answer == ALLOW) is allowed


def test_calls_of_another_architecture_end_the_process():
    assert run_filter(seccomp.build("x86_64"), 9, 0, ARM) == KILL
    assert run_filter(seccomp.build("aarch64"), 9, 0, X86) == KILL


def test_the_arm_filter_has_its_own_numbers():
    program = seccomp.build("aarch64")
    assert run_filter(program, 221, 0, ARM) != ALLOW  # execve
    assert run_filter(program, 59, 0, ARM) == ALLOW  # vmsplice there, execve on x86
    assert run_filter(program, 198, 1, ARM) == ALLOW  # a local socket


def test_an_unknown_processor_is_refused_and_not_left_without_a_filter():
    with pytest.raises(OSError, match="no seccomp filter"):
        seccomp.build("riscv64")


def test_the_root_shows_the_environment_and_not_the_course():
    contents = environment_contents()
    shown = {str(path) for path in contents.shown}
    package = Path(namespaces.__file__).resolve().parents[1]
    checkout = package.parents[1]
    assert any(package.is_relative_to(path) for path in shown)
    assert not any(checkout.is_relative_to(path) for path in shown)
    assert not any((checkout / "tests").is_relative_to(path) for path in shown)
    assert os.path.expanduser("~") not in shown
    assert shown.isdisjoint({"/", "/home", "/etc", "/var", "/usr", "/tmp", "/bin", "/usr/bin"})


def test_no_shown_path_stands_inside_another():
    shown = environment_contents().shown
    assert not [one for one in shown for other in shown if one != other and one.is_relative_to(other)]


def test_strays_are_never_ended_outside_a_sandbox():
    with pytest.raises(RuntimeError, match="of a sandbox alone"):
        guard.end_others()


HOLD = "import sys, time; kept = b'x' * (int(sys.argv[1]) * 2**20); sys.stdout.write('r'); sys.stdout.flush(); time.sleep(60)"


def test_memory_below_a_process_is_summed_without_the_process_itself():
    code = f"import subprocess, sys, time; p = [subprocess.Popen([sys.executable, '-c', {HOLD!r}, '40']) for _ in range(2)]; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        family = [parent.pid]
        try:
            assert parent.stdout.read(2) == "rr"  # one from each
            family = watch.descendants(parent.pid)
            assert len(family) == 3
            assert family[0] == parent.pid
            assert 80 < watch.memory_mb(parent.pid, 10_000) < 160
            assert 80 < watch.memory_mb(parent.pid, 1) < 160
        finally:
            for pid in reversed(family):
                os.kill(pid, signal.SIGKILL)


def test_a_process_that_has_ended_holds_nothing():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert watch.memory_mb(ended.pid, 100) == 0


def handle_that_hears(*messages):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for message in messages:
        theirs.send(message)
    theirs.close()
    return Sandbox(ours)


@pytest.mark.parametrize("messages", [(b"failed unshare: Operation not permitted",), ()])
def test_a_sandbox_that_cannot_be_had_is_refused_with_what_to_do(messages):
    sandbox = handle_that_hears(*messages)
    with sandbox, pytest.raises(SandboxRefused, match=r"nothing was graded.*user namespaces.*privileged") as refused:
        sandbox.wait_until_started(1)
    assert refused.value.exit_code == 3
    assert all(b"unshare" in message and "unshare" in str(refused.value) for message in messages)


def test_an_end_is_told_from_a_kill():
    sandbox = handle_that_hears(b"end 256 1.5")
    assert os.WEXITSTATUS(sandbox.wait_status(1)) == 1
    assert sandbox.cpu_seconds == 1.5
    assert handle_that_hears().wait_status(1) is None


def test_a_sandbox_that_never_speaks_is_refused_in_time():
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    started = time.monotonic()
    with theirs, Sandbox(ours) as sandbox, pytest.raises(SandboxRefused, match=r"0\.1 s"):
        sandbox.wait_until_started(0.1)
    assert time.monotonic() - started < 30


FORK_APART = """
import os, socket
from traceonce.sandbox.guard import fork_apart

ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

def refused():
    raise OSError(1, "not permitted")

def told():
    theirs.send(b"init")

os.waitpid(fork_apart(refused, theirs), 0)
print(ours.recv(100).decode())
ours.close()
codes = [os.waitstatus_to_exitcode(os.waitpid(fork_apart(be, theirs), 0)[1]) for be in (refused, told)]
print(codes)
"""


def test_a_forked_process_whose_supervisor_has_ended_ends_without_a_word():
    ran = subprocess.run([sys.executable, "-c", FORK_APART], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["failed not permitted", "[1, 1]"]
    assert ran.stderr == ""
