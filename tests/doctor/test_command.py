"""All checks together, as text and as JSON, and the command."""

import json
import os
import subprocess
import sys

import pytest

from tests.doctor.conftest import with_environ, with_packages
from traceonce.doctor import as_json, as_text, examine, exit_code
from traceonce.doctor.findings import Finding


def test_a_healthy_machine_exits_0_and_a_broken_one_1(healthy):
    findings = examine(healthy)
    assert exit_code(findings) == 0
    assert {finding.level for finding in findings} == {"OK"}
    broken = examine(with_packages(healthy, without=("jaxlib",)))
    assert exit_code(broken) == 1


def test_a_warning_alone_exits_0(healthy):
    findings = examine(with_environ(healthy, XLA_PYTHON_CLIENT_MEM_FRACTION="0.5"))
    assert "WARN" in {finding.level for finding in findings}
    assert exit_code(findings) == 0


def test_a_warning_without_advice_is_refused():
    with pytest.raises(ValueError, match="must say what to do"):
        Finding("WARN", "memory", "little")


def test_text_has_the_level_first_and_the_advice_under_it():
    text = as_text([Finding("OK", "python", "3.12.1"), Finding("FAIL", "jax", "missing " * 20, "install it.")])
    lines = text.splitlines()
    assert lines[0] == "OK    python              3.12.1"
    assert lines[1].startswith("FAIL  jax")
    assert max(map(len, lines)) <= 110
    assert lines[-3].strip() == "do: install it."
    assert lines[-1] == "1 OK, 0 WARN, 1 FAIL"


def test_json_says_the_same():
    document = json.loads(as_json([Finding("WARN", "memory", "1 GiB", "close something.")]))
    assert document == {
        "findings": [{"level": "WARN", "subject": "memory", "found": "1 GiB", "advice": "close something."}],
        "counts": {"OK": 0, "WARN": 1, "FAIL": 0},
        "exit_code": 0,
    }


def test_the_command_examines_this_machine(tmp_path):
    environ = {**os.environ, "XLA_CLIENT_MEM_FRACTION": "0.5", "XLA_PYTHON_CLIENT_MEM_FRACTION": "0.5"}
    command = [sys.executable, "-m", "traceonce", "doctor", "--json"]
    ran = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
    document = json.loads(ran.stdout)
    assert ran.returncode == document["exit_code"] == 1
    assert "both set" in next(each["found"] for each in document["findings"] if each["level"] == "FAIL")
    assert {"python", "jax", "backend", "memory", "grader's sandbox"} <= {
        each["subject"] for each in document["findings"]
    }
