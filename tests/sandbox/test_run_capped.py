import contextlib
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from traceonce.errors import TraceOnceError, UsageError
from traceonce.sandbox import Sample, run_capped
from traceonce.sandbox.capped_child import chain

GROW = "kept = []\nwhile True:\n    kept.append(bytearray(b'x') * 2_000_000)\n    print(len(kept))"

# name: program, kind, exit code, and words in the sentence
ENDINGS = {
    "comes to its end": ("print('done')", "finished", 0, "came to its end"),
    "exits": ("import sys; sys.exit(3)", "exited", 3, "exit code 3"),
    "exits with zero": ("import sys; sys.exit()", "finished", 0, "came to its end"),
    "raises": ("{}['missing']", "raised", 1, "raised KeyError"),
    "raises MemoryError": ("raise MemoryError", "memory_error", 1, "Python got no memory"),
    "wraps MemoryError": (
        "try:\n    raise MemoryError\nexcept MemoryError as error:\n    raise RuntimeError('no') from error",
        "memory_error",
        1,
        "raised RuntimeError",
    ),
    "wraps RESOURCE_EXHAUSTED": (
        "try:\n    raise ValueError('RESOURCE_EXHAUSTED: Out of memory')\nexcept ValueError:\n    raise KeyError('x')",
        "resource_exhausted",
        1,
        "XLA got no memory",
    ),
    "groups RESOURCE_EXHAUSTED": (
        "raise ExceptionGroup('two', [KeyError(1), ValueError('RESOURCE_EXHAUSTED: no')])",
        "resource_exhausted",
        1,
        "ExceptionGroup",
    ),
    "aborts": ("import os; os.abort()", "aborted", 134, "aborted itself"),
    "is killed by another": ("import os; os.kill(os.getpid(), 9)", "killed", 137, "not by the watchdog"),
    "crashes": ("import ctypes; ctypes.string_at(0)", "crashed", 139, "signal 11"),
    "syntax error": ("def", "raised", 1, "raised SyntaxError"),
}


@pytest.mark.parametrize("name", ENDINGS)
def test_the_kind_of_death_is_told(name):
    program, kind, code, words = ENDINGS[name]
    ending = run_capped(program, memory_mb=500)
    assert (ending.kind, ending.shell_code) == (kind, code)
    assert words in ending.sentence


def test_a_process_over_its_cap_is_killed_without_a_word_and_its_memory_was_seen_to_climb():
    seen = []
    ending = run_capped(GROW, memory_mb=150, on_sample=seen.append)
    assert (ending.kind, ending.returncode, ending.shell_code) == ("over_cap", -signal.SIGKILL, 137)
    assert ending.stderr == ""
    assert tuple(seen) == ending.samples
    assert ending.samples[-1].rss_mb == ending.peak_mb > 150
    assert ending.samples[0].rss_mb < 100
    assert [sample.seconds for sample in seen] == sorted(sample.seconds for sample in seen)


def test_what_stood_in_the_buffer_is_lost_with_the_process():
    ending = run_capped("print('early', flush=True)\n" + GROW, memory_mb=150, environment={"PYTHONUNBUFFERED": ""})
    assert ending.stdout == "early\n"


def test_what_the_child_starts_counts_and_is_killed_with_it():
    program = (
        "import subprocess, sys, time\n"
        f"held = subprocess.Popen([sys.executable, '-c', 'kept = b\"x\" * {200 * 2**20}; import time; time.sleep(100)'])\n"
        "print(held.pid, flush=True)\ntime.sleep(100)"
    )
    ending = run_capped(program, memory_mb=180, seconds=100)
    assert ending.kind == "over_cap"
    grandchild = int(ending.stdout)
    with contextlib.suppress(psutil.NoSuchProcess):
        psutil.Process(grandchild).wait(30)


def test_the_clock_ends_what_does_not_end():
    ending = run_capped("import time\nprint('on', flush=True)\ntime.sleep(100)", memory_mb=500, seconds=1.5)
    assert ending.kind == "timeout"
    assert ending.stdout == "on\n"
    assert "time was up" in ending.sentence


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited on Linux alone")
def test_refused_memory_is_an_exception_and_not_a_kill():
    ending = run_capped("kept = bytearray(10**9)", memory_mb=200, how="refuse")
    assert ending.kind == "memory_error"
    assert ending.raised[0].type_name == "MemoryError"
    assert ending.peak_mb < 200


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address space is limited on Linux alone")
def test_xla_without_memory_is_told_from_python_without_memory():
    program = (
        "import jax.numpy as jnp\njnp.ones(3).block_until_ready()\ny = jnp.zeros((40_000, 40_000)).block_until_ready()"
    )
    ending = run_capped(
        program, memory_mb=2500, how="refuse", imports=("jax",), environment={"JAX_PLATFORMS": "cpu"}, seconds=200
    )
    assert ending.kind == "resource_exhausted"
    assert any("RESOURCE_EXHAUSTED" in part.message for part in ending.raised)


def test_a_script_and_a_command_are_run_as_well(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("print(__name__, __import__('sys').argv)")
    assert run_capped(script, memory_mb=500).stdout == f"__main__ ['{script}']\n"
    command = [sys.executable, "-c", "raise MemoryError('no more')"]
    assert run_capped(command, memory_mb=500).kind == "memory_error"


def test_much_output_neither_stalls_the_child_nor_fills_the_parent():
    ending = run_capped("for _ in range(300):\n    print('x' * 10_000)\nprint('end')", memory_mb=500)
    assert ending.kind == "finished"
    assert ending.stdout.endswith("end\n")
    assert len(ending.stdout) <= 200_000


def test_a_callback_that_raises_ends_the_child_and_is_not_swallowed():
    pids = []

    def stop(_: Sample):
        pids.extend(child.pid for child in psutil.Process().children())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_capped("import time\ntime.sleep(100)", memory_mb=500, on_sample=stop)
    assert pids
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_the_child_dies_with_its_parent():
    code = (
        "from traceonce.sandbox import run_capped\n"
        "run_capped('import os, time\\nprint(os.getpid(), flush=True)\\ntime.sleep(100)', memory_mb=500)"
    )
    with subprocess.Popen([sys.executable, "-c", code]) as parent:
        end = time.monotonic() + 60
        while not (children := psutil.Process(parent.pid).children()) or len(children[0].cmdline()) < 3:
            assert time.monotonic() < end
            time.sleep(0.05)
        time.sleep(1)  # the child's watch on its parent begins with its first lines
        os.kill(parent.pid, signal.SIGKILL)
        _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"memory_mb": 0}, UsageError, "positive"),
        ({"memory_mb": 100, "seconds": -1}, UsageError, "positive"),
        ({"memory_mb": 100, "how": "refuse", "program": ["ls"]}, UsageError, "how='kill'"),
        ({"memory_mb": 100, "program": ["/nowhere/program"]}, TraceOnceError, "cannot be started"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(options, error, words):
    with pytest.raises(error, match=words):
        run_capped(options.pop("program", "pass"), **options)


def test_no_descriptor_is_left_open():
    run_capped("pass", memory_mb=500)
    before = psutil.Process().num_fds()
    for _ in range(3):
        run_capped("pass", memory_mb=500)
    assert psutil.Process().num_fds() == before


def test_a_chain_with_a_loop_comes_to_an_end():
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert [part["message"] for part in chain(first)] == ["a", "b"]
