"""The backend in a child with a clock, the GPU, and the allocator's settings."""

import json
import subprocess
import sys
import time

import pytest

from tests.doctor.conftest import HEALTHY_PROBE, only, with_environ, with_packages
from traceonce.doctor import devices
from traceonce.doctor.machine import Machine, Ran, run_bounded


def levels(findings):
    return [finding.level for finding in findings]


def answer(**changes):
    return Ran(0, devices._MARK + json.dumps({**HEALTHY_PROBE, **changes}))


def test_a_backend_that_hangs_fails_with_a_sentence(healthy, children):
    children.answers["jax"] = Ran(None)
    (finding,) = devices.backend(healthy)
    assert finding.level == "FAIL"
    assert "did not answer within 60 s" in finding.found
    assert "JAX_PLATFORMS=cpu" in finding.advice


def test_the_probe_takes_no_gpu_memory(healthy, children):
    machine = with_environ(healthy, XLA_PYTHON_CLIENT_PREALLOCATE="true", OTHER="kept")
    list(devices.backend(machine))
    assert [(seen["XLA_PYTHON_CLIENT_PREALLOCATE"], seen["OTHER"]) for seen in children.environments] == [
        ("false", "kept")
    ]


@pytest.mark.parametrize(
    ("error", "environ", "found", "advice"),
    [
        (
            "F1129 22:58:07.166183   15693 flags.cc:234] Unknown flag in XLA_FLAGS: --xla_nonsense=1\n  trailing stack",
            {},
            "Unknown flag in XLA_FLAGS: --xla_nonsense=1",
            "unset XLA_FLAGS",
        ),
        ("Traceback\nAssertionError\n", {"JAX_PLATFORMS": "cuda"}, "AssertionError", "JAX_PLATFORMS is 'cuda'"),
        ("", {}, "exit code 134", "read what it says first"),
    ],
)
def test_a_backend_that_does_not_start_fails_with_its_own_last_words(healthy, children, error, environ, found, advice):
    children.answers["jax"] = Ran(134, "", error)
    (finding,) = devices.backend(with_environ(healthy, **environ))
    assert finding.level == "FAIL"
    assert found in finding.found
    assert advice in finding.advice


def test_a_device_that_computes_wrongly_fails(healthy, children):
    children.answers["jax"] = answer(answer=99.0)
    assert levels(only(devices.backend(healthy), "backend")) == ["FAIL"]


def test_a_cpu_beside_a_driver_warns_unless_it_was_asked_for(healthy, write):
    assert levels(only(devices.backend(healthy), "backend")) == ["OK"]
    write("/proc/driver/nvidia/version", "NVRM\n")
    assert levels(only(devices.backend(healthy), "backend")) == ["WARN"]
    assert levels(only(devices.backend(with_environ(healthy, JAX_PLATFORMS="cpu")), "backend")) == ["OK"]


def test_devices_are_listed_with_their_memory(healthy, children):
    gpu = {"platform": "gpu", "kind": "NVIDIA H200", "limit": 100 * 2**30, "used": 2**30}
    children.answers["jax"] = answer(backend="gpu", devices=[{"id": 0, **gpu}, {"id": 1, **gpu}])
    findings = list(devices.backend(healthy))
    assert "gpu, 2 devices" in only(findings, "backend")[0].found
    assert only(findings, "device 1")[0].found == "gpu: NVIDIA H200, 100.0 GiB for JAX, 1.0 GiB in use"


@pytest.mark.parametrize(("option", "level"), [(True, "OK"), (None, "OK"), (False, "WARN"), ("INTERNAL: no", "WARN")])
def test_the_experimental_option_is_said_to_be_there_or_not(healthy, children, option, level):
    children.answers["jax"] = answer(option=option)
    assert levels(only(devices.backend(healthy), "memory plans")) == [level]


def test_without_jax_no_child_is_started(healthy, children):
    assert list(devices.backend(with_packages(healthy, without=("jax",)))) == []
    assert children.environments == []


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, [("OK", "75 %")]),
        ({"XLA_CLIENT_MEM_FRACTION": "0.5"}, [("OK", "XLA_CLIENT_MEM_FRACTION=0.5")]),
        ({"XLA_PYTHON_CLIENT_MEM_FRACTION": ".4"}, [("WARN", "old name of XLA_CLIENT_MEM_FRACTION")]),
        ({"XLA_CLIENT_MEM_FRACTION": ".4", "XLA_PYTHON_CLIENT_MEM_FRACTION": ".4"}, [("FAIL", "both set")]),
        ({"XLA_CLIENT_MEM_FRACTION": "half"}, [("FAIL", "'half'")]),
        ({"XLA_CLIENT_MEM_FRACTION": "-1"}, [("FAIL", "'-1'")]),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, [("OK", "is off")]),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "true"}, [("OK", "on, as it is without it")]),
        ({"XLA_PYTHON_CLIENT_PREALLOCATE": "off"}, [("WARN", "means on")]),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, [("WARN", "very slow")]),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "cuda_async"}, [("OK", "cuda_async")]),
        ({"XLA_PYTHON_CLIENT_ALLOCATOR": "malloc"}, [("FAIL", "unknown")]),
    ],
)
def test_allocator_settings_are_read_under_old_and_new_names(healthy, environ, expected):
    findings = list(devices.allocator(with_environ(healthy, **environ)))
    assert levels(findings) == [level for level, _ in expected]
    assert all(words in finding.found for finding, (_, words) in zip(findings, expected, strict=True))


def test_what_the_allocator_check_says_is_what_jaxlib_does(monkeypatch):
    """The check repeats rules of jaxlib: this asks jaxlib itself."""
    from jaxlib.xla_client import generate_pjrt_gpu_plugin_options as options

    for name in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_ALLOCATOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "off")
    assert options()["preallocate"] is True
    for kind in devices._ALLOCATORS:
        monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", kind)
        assert options()["allocator"] == kind
    monkeypatch.setenv("XLA_PYTHON_CLIENT_ALLOCATOR", "malloc")
    with pytest.raises(ValueError, match="must be one of"):
        options()
    monkeypatch.delenv("XLA_PYTHON_CLIENT_ALLOCATOR")
    monkeypatch.setenv("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")
    assert options()["memory_fraction"] == 0.5
    monkeypatch.setenv("XLA_CLIENT_MEM_FRACTION", "0.5")
    with pytest.raises(ValueError, match="deprecated"):
        options()


def test_what_runs_on_the_gpu_is_listed(healthy, children):
    children.answers["--query-gpu"] = Ran(
        0, "0, NVIDIA H200, 570.1, 143771, 5, 0\n1, NVIDIA H200, 570.1, 143771, 99000, 97\n"
    )
    children.answers["--query-compute-apps"] = Ran(0, "4242, python, 98990\n")
    findings = list(devices.gpu(healthy))
    assert [(finding.subject, finding.level) for finding in findings] == [
        ("GPU 0", "OK"),
        ("GPU 1", "WARN"),
        ("on the GPU", "OK"),
    ]
    assert "99000 of 143771 MiB used, busy 97 %" in findings[1].found
    assert "process 4242 (python) holds 98990 MiB" in findings[2].found


@pytest.mark.parametrize(
    ("ran", "words"),
    [(Ran(None), "did not answer"), (Ran(9, "NVIDIA-SMI has failed because it could not\n"), "has failed")],
)
def test_an_nvidia_smi_that_hangs_or_fails_is_a_failure(healthy, children, ran, words):
    children.answers["--query-gpu"] = ran
    (finding,) = devices.gpu(healthy)
    assert (finding.level, words in finding.found) == ("FAIL", True)


def test_no_nvidia_smi_is_no_finding_without_a_driver(healthy, write):
    assert list(devices.gpu(healthy)) == []
    write("/proc/driver/nvidia/version", "NVRM\n")
    assert levels(devices.gpu(healthy)) == ["WARN"]


# -- the real child processes


def test_the_probe_runs_on_this_machine():
    findings = list(devices.backend(Machine()))
    assert levels(only(findings, "backend")) == ["OK"]
    assert "computes" in only(findings, "backend")[0].found
    assert only(findings, "memory plans")


def test_a_child_that_sleeps_is_ended_and_what_it_said_is_kept():
    code = "import sys, time; print('begun', flush=True); time.sleep(600)"
    ran = run_bounded([sys.executable, "-c", code], 1.5, {})
    assert (ran.code, ran.out) == (None, "begun\n")


def test_a_grandchild_that_holds_the_output_open_does_not_hold_the_doctor():
    code = "import subprocess, sys; print(subprocess.Popen(['sleep', '60']).pid)"
    start = time.monotonic()
    ran = run_bounded([sys.executable, "-c", code], 50, {"PATH": "/usr/bin:/bin"})
    assert time.monotonic() - start < 50
    assert ran.code == 0
    subprocess.run(["kill", ran.out.strip()], check=True)


def test_a_command_that_does_not_exist_has_code_127():
    assert run_bounded(["no-such-command-here"], 5, {}).code == 127
