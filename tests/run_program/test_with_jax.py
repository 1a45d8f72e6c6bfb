"""What the report says of programs that use JAX."""

import json
import re
import signal
import subprocess
import sys

import pytest

from tests.run_program.test_itself import environment, killed, observed, script

PROGRAM = """
    import atexit, sys
    import numpy as np
    import jax
    import jax.numpy as jnp
    from traceonce import watch

    @jax.jit
    def step(x, rate):
        return (x * rate).sum()

    @watch
    @jax.jit
    def counted(x):
        return x + 1

    @jax.jit
    def at_exit(x):
        return x - 1

    print(type(step).__module__, type(jax.jit).__name__, [type(f).__name__ for f in sys.meta_path], sorted(vars(jax.__spec__.loader)))
    for size in (3, 4, 5):
        step(np.ones(size, np.float32), 0.5)
    step(np.ones(5, np.float32), np.float32(0.5))
    for _ in range(3):
        jax.jit(lambda x: x * 2)(1.0)
    for _ in range(7):
        counted(np.ones(2, np.float32))
    jnp.arange(5) + 1
    atexit.register(lambda: at_exit(1.0))
    raise KeyError("the program's own end")
    """


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jax")
    script(folder, PROGRAM)
    ended = observed(["--html", "r.html", "--json", "r.json", "program.py"], folder)
    return ended, json.loads((folder / "r.json").read_text()), (folder / "r.html").read_text()


def row(document, name):
    (found,) = [each for each in document["functions"] if each["name"] == name]
    return found


def test_the_exception_stays_the_programs_own(seen):
    ended, _, _ = seen
    assert ended.code == 1
    assert ended.own_error.startswith("Traceback (most recent call last):\n  File")
    assert ended.own_error.endswith("""KeyError: "the program's own end"\n""")
    assert "traceonce" not in ended.own_error


def test_nothing_of_jax_is_wrapped_and_no_finder_is_left(seen):
    ended, _, _ = seen
    plain = re.match(r"(\S+) (\S+) \[(.*?)\] \[(.*?)\]\n", ended.out)
    assert plain is not None, ended.out
    assert plain[2] == "function"
    assert "AfterImport" not in plain[3]
    assert "exec_module" not in plain[4]


def test_functions_are_counted_with_their_place(seen):
    _, document, _ = seen
    step = row(document, "step")
    assert (step["traces"], step["lowerings"], step["compiles"], step["calls"]) == (4, 4, 4, None)
    assert step["location"].endswith("program.py:8")
    assert min(step["trace_seconds"], step["lower_seconds"], step["compile_seconds"]) > 0
    assert row(document, "<lambda>")["compiles"] == 3
    assert row(document, "at_exit")["compiles"] == 1
    assert document["jax_operations"]["compiles"] >= 1
    assert "arange" not in {each["name"] for each in document["functions"]}


def test_calls_are_known_of_functions_that_the_program_watches(seen):
    ended, document, _ = seen
    assert (row(document, "counted")["calls"], row(document, "counted")["compiles"]) == (7, 1)
    assert re.search(r"^counted +7 +1 +1 +0 ", ended.report, re.MULTILINE)
    assert re.search(r"^step +- +4 +4 +0 ", ended.report, re.MULTILINE)


def test_each_reason_names_what_changed(seen):
    ended, document, _ = seen
    reasons = [(each["name"], each["number"], each["cause"]) for each in document["again"]]
    assert reasons == [
        ("step", 2, "shape"),
        ("step", 3, "shape"),
        ("step", 4, "weak"),
        ("<lambda>", 2, "function"),
        ("<lambda>", 3, "function"),
    ]
    assert document["again"][0]["changes"] == [
        {"cause": "shape", "path": "x", "old": "float32[3]", "new": "float32[4]", "in_type": False}
    ]
    assert "shape  x: float32[3] -> float32[4]" in ended.report
    assert "and 1 more time the same kind" in ended.report
    assert "weak  rate: weak float32[] -> strong float32[]" in ended.report


def test_the_run_has_a_length_and_a_peak(seen):
    ended, document, _ = seen
    assert document["complete"]
    assert document["memory"]["peak_bytes"] > 50 * 2**20
    assert document["memory"]["largest_child_bytes"] == 0
    assert 0 < document["busy_seconds"] < document["seconds"]
    assert re.search(r"program.py: \d+\.\d s, peak memory \d+ MiB, JAX ", ended.report)


def test_the_page_is_complete_and_loads_nothing(seen):
    _, document, page = seen
    assert page.startswith("<!doctype html>")
    assert not re.search(r"<script|<link|<img|https?:|url\(|@import|src=", page)
    assert page.count("<rect") == sum(
        each["traces"] + each["lowerings"] + each["compiles"]
        for each in (*document["functions"], document["jax_operations"])
    )
    for words in (
        "step",
        "&lt;lambda&gt;",
        "shape  x: float32[3] -&gt; float32[4]",
        "prefers-color-scheme: dark",
        "aria-label",
    ):
        assert words in page


def test_a_program_that_is_killed_has_told_what_it_did_until_then(tmp_path):
    script(
        tmp_path,
        """
        import threading, time
        import jax, numpy as np
        step = jax.jit(lambda x: x + 1)
        worker = threading.Thread(target=lambda: [step(np.ones(n, np.float32)) for n in (3, 4)])
        worker.start()
        worker.join()
        print("ready", flush=True)
        time.sleep(100)
        """,
    )
    seen = killed(["-m", "traceonce", "run", "program.py"], tmp_path, signal.SIGTERM)
    assert seen.code == -signal.SIGTERM
    assert re.search(r"^<lambda> +- +2 +2 +0 ", seen.report, re.MULTILINE)
    assert "shape  x: float32[3] -> float32[4]" in seen.report
    assert "peak memory at least" in seen.report


def test_a_forked_child_that_compiles_adds_nothing_and_reports_nothing(tmp_path):
    script(
        tmp_path,
        """
        import os, sys
        import jax
        child = os.fork()
        if child == 0:
            jax.jit(lambda x: x + 1)(1.0)
            sys.exit(0)
        print(os.waitpid(child, 0)[1])
        """,
    )
    seen = observed(["program.py"], tmp_path)
    assert (seen.code, seen.out) == (0, "0\n")
    assert "imported JAX and compiled nothing" in seen.report


def test_settings_made_before_the_import_keep_their_effect(tmp_path):
    script(
        tmp_path,
        """
        import os
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=3"
        import jax
        print(jax.device_count())
        """,
    )
    assert observed(["program.py"], tmp_path).out == "3\n"


def test_a_test_suite_can_be_run_as_a_module(tmp_path):
    script(tmp_path, "import jax\n\ndef test_it():\n    assert jax.jit(lambda x: x + 1)(1.0) == 2\n", "test_it.py")
    command = ["-m", "traceonce", "run", "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    ran = subprocess.run(
        [sys.executable, *command], cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0
    assert "1 passed" in ran.stdout
    assert re.search(r"^<lambda> +- +1 +1 +0 .*test_it.py:4$", ran.stderr, re.MULTILINE)
