"""`trace_budget` in somebody's test suite: what passes, what fails, and what a failure says."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import jax
import pytest

import traceonce.budget
from traceonce.budget import Budget
from traceonce.errors import UsageError

pytest_plugins = ["pytester"]

HEAD = """
import jax
import jax.numpy as jnp
import numpy as np
import pytest

def make_step():
    @jax.jit
    def step(x):
        return (x * 2).sum()
    return step

def rows(n):
    return np.ones(n, np.float32)
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Run a test file with the plugin and nothing else loaded."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    # In CI pytest repeats whole failures in its summary.
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    # What the plugin imports is imported here already: the inner run gives modules back that it imports first.
    assert traceonce.budget
    assert jax

    def run(body: str, *options: str):
        pytester.makepyfile(test_it=HEAD + body)
        # Where the package is installed, the outer run has loaded the plugin already, which pytest remarks upon.
        quiet = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
        arguments = ("-p", "traceonce.pytest_plugin", "-p", "no:cacheprovider", "--strict-markers", *quiet, *options)
        return pytester.runpytest_inprocess(*arguments)

    return run


def test_a_test_within_its_budget_passes(suite):
    result = suite(
        """
@pytest.mark.trace_budget(traces=1, compiles=1)
def test_one_shape():
    step = make_step()
    for _ in range(5):
        step(rows(3))
    jnp.ones(7) + 1
"""
    )
    result.assert_outcomes(passed=1)


def test_a_failure_says_function_count_allowed_and_why_of_each_extra_trace(suite):
    result = suite(
        """
@pytest.mark.trace_budget(traces=1, compiles=1)
def test_three_shapes():
    step = make_step()
    for n in (3, 4, 3, 5):
        step(rows(n))
"""
    )
    result.assert_outcomes(failed=1)
    shown = str(result.stdout)
    result.stdout.re_match_lines_random(
        [
            r".*over the trace budget",
            r"step \(.*test_it\.py:\d+\): 3 traces, 1 allowed",
            r"step \(.*\): 3 compiles, 1 allowed",
        ]
    )
    assert shown.count("shape  x: float32[3] -> float32[4]") == 1
    assert shown.count("-> float32[5]") == 1
    assert "test_it.py:" in shown
    assert "def test_three_shapes" not in shown, "the source of the test is no news"


def test_the_budget_is_for_each_function_and_not_for_their_sum(suite):
    result = suite(
        """
@pytest.mark.trace_budget(traces=1, compiles=1)
def test_two_functions():
    make_step()(rows(3))
    jax.jit(lambda x: x - 1)(rows(3))
"""
    )
    result.assert_outcomes(passed=1)


def test_a_named_function_alone_is_counted(suite):
    result = suite(
        """
def three_shapes_of_two_functions():
    step, other = make_step(), jax.jit(lambda x: x - 1)
    for n in (3, 4, 5):
        other(rows(n))
    step(rows(3))

@pytest.mark.trace_budget("step", traces=1)
def test_named():
    three_shapes_of_two_functions()

@pytest.mark.trace_budget("<lambda>", traces=1)
def test_the_other():
    three_shapes_of_two_functions()

@pytest.mark.trace_budget("step", traces=1)
@pytest.mark.trace_budget("<lambda>", traces=3)
def test_a_budget_for_each():
    three_shapes_of_two_functions()
""",
        "-v",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*test_the_other FAILED*", "*<lambda> (*): 3 traces, 1 allowed"])


def test_a_nearer_marker_takes_the_place_of_one_further_out(suite):
    result = suite(
        """
pytestmark = pytest.mark.trace_budget(traces=1)

@pytest.mark.trace_budget(traces=2)
def test_two():
    step = make_step()
    for n in (3, 4):
        step(rows(n))

def test_one():
    step = make_step()
    for n in (3, 4):
        step(rows(n))
""",
        "-v",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*test_two PASSED*", "*test_one FAILED*"])


def test_what_fixtures_and_earlier_tests_compiled_does_not_count(suite):
    result = suite(
        """
shared = make_step()

@pytest.fixture
def warm():
    shared(rows(3))

@pytest.mark.trace_budget(traces=0, compiles=0)
def test_warm(warm):
    shared(rows(3))

@pytest.mark.trace_budget(traces=0)
def test_cold(warm):
    shared(rows(4))
"""
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*step (*): 1 trace, 0 allowed", "*shape*x: float32?3? -> float32?4?"])


def test_a_compile_without_a_trace_is_explained_under_compiles(suite):
    result = suite(
        """
@pytest.mark.trace_budget(traces=1, compiles=1)
def test_committed():
    step = make_step()
    step(jnp.ones(3))
    step(jax.device_put(jnp.ones(3), jax.devices()[0]))
"""
    )
    result.assert_outcomes(failed=1)
    shown = str(result.stdout)
    assert "2 compiles, 1 allowed" in shown
    assert "traces, 1 allowed" not in shown
    assert "committed" in shown
    assert "compiled again without a trace" in shown


def test_planned_bytes_are_those_of_the_executables(suite):
    body = """
@pytest.mark.trace_budget("<lambda>", planned_bytes={limit})
def test_memory():
    grow = jax.jit(lambda x: jnp.outer(x, x))
    grow(rows(10))
    grow(rows(1000))
"""
    needed = 4 * 1000 + 4 * 1000 * 1000
    suite(body.format(limit=needed)).assert_outcomes(passed=1, warnings=1)
    result = suite(body.format(limit=needed - 1))
    result.assert_outcomes(failed=1, warnings=1)
    result.stdout.fnmatch_lines(["*<lambda> (*): 4,004,000 planned bytes (4.0 MB), 4,003,999 allowed (4.0 MB)"])
    result.stdout.fnmatch_lines(["*XLA_FLAGS=*xla_cpu_experimental_ynn_fusion_type=*"])


def test_with_the_flag_hidden_temporaries_count_and_nothing_is_warned_of(pytester):
    """In a process of its own, because XLA reads its flags once."""
    pytester.makepyfile(
        test_it=HEAD
        + """
@pytest.mark.trace_budget(planned_bytes=10_000_000)
def test_fan_out():
    fan = jax.jit(lambda x: jax.vmap(lambda w: jnp.tanh(x @ w))(jnp.ones((64, 256, 256)) * x).sum())
    fan(np.ones((256, 256), np.float32))
"""
    )
    command = [sys.executable, "-m", "pytest", "-p", "traceonce.pytest_plugin", "-p", "no:cacheprovider", "-q"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plain = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    environ["XLA_FLAGS"] = "--xla_cpu_experimental_ynn_fusion_type="
    full = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert (plain.returncode, full.returncode) == (0, 1), plain.stdout + full.stdout
    assert "1 warning" in plain.stdout
    assert "warning" not in full.stdout
    assert "planned bytes" in full.stdout


def test_a_test_that_fails_by_itself_keeps_its_failure_and_gets_the_budget_as_a_section(suite):
    result = suite(
        """
@pytest.mark.trace_budget(traces=1)
def test_wrong():
    step = make_step()
    for n in (3, 4):
        step(rows(n))
    assert 1 == 2
"""
    )
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*assert 1 == 2*", "*trace_budget*", "step (*): 2 traces, 1 allowed"])


def test_skips_and_expected_failures_mean_what_they_mean(suite):
    result = suite(
        """
@pytest.mark.trace_budget(traces=0)
def test_skipped():
    pytest.skip("not here")

@pytest.mark.xfail(strict=True)
@pytest.mark.trace_budget(traces=0)
def test_known():
    make_step()(rows(3))
"""
    )
    result.assert_outcomes(skipped=1, xfailed=1)


def test_methods_of_unittest_can_carry_it(suite):
    result = suite(
        """
import unittest

class Case(unittest.TestCase):
    @pytest.mark.trace_budget(traces=0)
    def test_method(self):
        make_step()(rows(3))
"""
    )
    result.assert_outcomes(failed=1)


def test_the_fixture_opens_a_block_with_a_budget(suite):
    result = suite(
        """
def test_within(trace_budget):
    step = make_step()
    step(rows(3))
    with trace_budget("step", traces=0) as seen:
        step(rows(3))
    assert seen["step"].traces == 0

def test_over(trace_budget):
    step = make_step()
    with trace_budget(traces=1):
        step(rows(3))
        step(rows(4))

def test_own_error(trace_budget):
    step = make_step()
    with trace_budget(traces=0):
        step(rows(3))
        raise KeyError("mine")
""",
        "-v",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*2 traces, 1 allowed", "*KeyError: 'mine'*"])


def test_nothing_stays_registered_after_a_test(suite):
    from traceonce.observe.monitor import MONITOR

    before = MONITOR.blocks
    suite(
        """
@pytest.mark.trace_budget(traces=0)
def test_over():
    make_step()(rows(3))

@pytest.mark.trace_budget(traces=0)
def test_error():
    raise ValueError
"""
    ).assert_outcomes(failed=2)
    assert MONITOR.blocks == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "has no limit: write for example"),
        ("trace=1", "has no limit 'trace'"),
        ("traces=-1", "from 0 up, not -1"),
        ("compiles=True", "from 0 up, not True"),
        ("planned_bytes=1e6", "from 0 up, not 1000000.0"),
        ("3, traces=1", "takes names of functions, not 3"),
    ],
)
def test_a_wrong_budget_fails_the_test_with_a_sentence(suite, arguments, words):
    result = suite(f"@pytest.mark.trace_budget({arguments})\ndef test_it():\n    pass\n")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"*{words}*"])
    assert "Traceback" not in str(result.stdout)


def test_a_budget_by_itself_is_checked_too():
    with pytest.raises(UsageError, match="whole number"):
        Budget.of("step", traces="one")
    assert Budget.of("step", traces=1, compiles=None) == Budget(("step",), traces=1)


def test_without_a_budget_jax_is_not_imported(pytester):
    pytester.makepyfile(
        """
import sys

def test_it():
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert "jax" not in loaded
    assert "numpy" not in loaded
    assert "traceonce.observe" not in sys.modules
    assert "traceonce.pytest_plugin" in sys.modules
"""
    )
    command = [sys.executable, "-m", "pytest", "-p", "traceonce.pytest_plugin", "-p", "no:cacheprovider", "-q"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout


def test_a_jax_that_cannot_be_watched_fails_the_budgeted_test_alone(pytester):
    pytester.mkpydir("jax").joinpath("__init__.py").write_text("__version__ = '0.4.1'\n")
    pytester.makepyfile(
        """
import pytest

@pytest.mark.trace_budget(traces=1)
def test_budgeted():
    pass

def test_plain():
    pass
"""
    )
    command = [sys.executable, "-m", "pytest", "-p", "traceonce.pytest_plugin", "-p", "no:cacheprovider", "-q"]
    environ = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(pytester.path)}
    ran = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "1 failed, 1 passed" in ran.stdout
    assert "cannot watch this JAX" in ran.stdout
    assert "traceonce doctor" in ran.stdout


def test_the_package_offers_the_plugin_to_pytest():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"traceonce": "traceonce.pytest_plugin"}
