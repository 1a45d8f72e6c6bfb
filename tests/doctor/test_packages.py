"""Versions that fit together, plugins, and cuDNN."""

from dataclasses import replace

import pytest

from tests.doctor.conftest import only, package, with_environ, with_packages
from traceonce.doctor import packages

PLUGIN = package(
    "jax-cuda12-plugin",
    "0.11.2",
    "jax-cuda12-pjrt==0.11.2",
    'nvidia-cudnn-cu12<10.0,>=9.8; sys_platform == "linux" and extra == "with-cuda"',
)
WHEEL = package("nvidia-cudnn-cu12", "9.12.0.46")


def levels(findings):
    return [finding.level for finding in findings]


@pytest.mark.parametrize(
    ("version", "level", "words"),
    [
        ("0.4.30", "FAIL", "old JAX"),
        ("0.11.1", "FAIL", "old JAX"),
        ("0.11.2", "OK", "0.11.2"),
        ("0.12.9", "OK", "0.12.9"),
        ("0.13.0", "WARN", "newer"),
    ],
)
def test_jax_is_judged_by_what_traceonce_requires(healthy, version, level, words):
    jax = package("jax", version, f"jaxlib<={version},>=0.4")
    machine = with_packages(healthy, jax, package("jaxlib", version))
    (finding,) = only(packages.versions(machine), "jax")
    assert (finding.level, words in finding.found) == (level, True)
    assert level == "OK" or "jax<0.13,>=0.11.2" in finding.advice


@pytest.mark.parametrize("version", ["0.11.1", "0.12.0"])
def test_a_jaxlib_of_another_version_fails_and_names_both(healthy, version):
    (finding,) = only(packages.versions(with_packages(healthy, package("jaxlib", version))), "jaxlib")
    assert finding.level == "FAIL"
    assert version in finding.found
    assert "jax==0.11.2" in finding.advice


def test_a_missing_jax_fails_and_jaxlib_is_judged_on_its_own(healthy):
    findings = list(packages.versions(with_packages(healthy, without=("jax", "jaxlib"))))
    assert levels(only(findings, "jax") + only(findings, "jaxlib")) == ["FAIL", "FAIL"]


def test_libraries_of_the_course_fail_where_those_of_the_desk_warn(healthy):
    machine = with_packages(healthy, package("optax", "0.1.0"), package("ipywidgets", "7.0"), without=("anywidget",))
    findings = list(packages.versions(machine))
    assert levels(only(findings, "optax")) == ["FAIL"]
    assert levels(only(findings, "ipywidgets") + only(findings, "anywidget")) == ["WARN", "WARN"]
    assert levels(only(findings, "equinox")) == ["OK"]


def test_without_its_own_metadata_it_says_that_versions_were_not_judged(healthy):
    (finding,) = only(packages.versions(with_packages(healthy, without=("traceonce",))), "traceonce")
    assert finding.level == "WARN"


def test_an_old_python_fails(healthy):
    (finding,) = only(packages.versions(replace(healthy, python=(3, 11, 9))), "python")
    assert (finding.level, "3.11.9" in finding.found) == ("FAIL", True)


def test_a_plugin_of_another_version_fails(healthy):
    machine = with_packages(healthy, package("jax-cuda12-plugin", "0.11.1"))
    (finding,) = packages.plugins(machine)
    assert finding.level == "FAIL"
    assert "runs on the CPU" in finding.found


def test_two_plugins_warn(healthy):
    machine = with_packages(healthy, PLUGIN, package("jax-cuda13-plugin", "0.11.2"))
    assert levels(packages.plugins(machine)) == ["WARN"]


def test_a_driver_without_a_plugin_warns_and_names_the_command(healthy, write):
    assert levels(packages.plugins(healthy)) == ["OK"]
    write("/proc/driver/nvidia/version", "NVRM version: 570\n")
    (finding,) = packages.plugins(healthy)
    assert finding.level == "WARN"
    assert "ACCELERATOR=cuda13" in finding.advice


def test_cudnn_does_not_matter_without_a_plugin(healthy):
    (finding,) = packages.cudnn(with_packages(healthy, WHEEL))
    assert finding.level == "OK"
    assert "nvidia-cudnn-cu12 9.12.0.46" in finding.found


def test_one_good_provider_of_cudnn_is_ok(healthy, tmp_path):
    machine = with_packages(healthy, PLUGIN, WHEEL)
    library = tmp_path / "site-packages/nvidia/cudnn/lib/libcudnn.so.9"
    library.parent.mkdir(parents=True)
    library.touch()
    assert levels(packages.cudnn(machine)) == ["OK"]
    # The wheel's own folder on the search path is no second provider.
    assert levels(packages.cudnn(with_environ(machine, LD_LIBRARY_PATH="/site-packages/nvidia/cudnn/lib"))) == ["OK"]


@pytest.mark.parametrize(("version", "age"), [("9.1.0.70", "too old"), ("10.1", "too new"), ("8.9", "too old")])
def test_a_wheel_outside_of_what_the_plugin_requires_fails(healthy, version, age):
    findings = list(packages.cudnn(with_packages(healthy, PLUGIN, package("nvidia-cudnn-cu12", version))))
    assert levels(findings) == ["FAIL"]
    assert age in findings[0].found
    assert "nvidia-cudnn-cu12<10.0,>=9.8" in findings[0].advice


def test_a_library_in_front_of_the_wheel_is_a_second_provider_and_may_be_too_old(healthy, write):
    write("/opt/cuda/lib/libcudnn.so.8.6.0", "")
    machine = with_environ(with_packages(healthy, PLUGIN, WHEEL), LD_LIBRARY_PATH="/nowhere:/opt/cuda/lib")
    findings = list(packages.cudnn(machine))
    assert levels(findings) == ["WARN", "FAIL"]
    assert "LD_LIBRARY_PATH puts /opt/cuda/lib in front" in findings[0].found
    assert "/opt/cuda/lib/libcudnn.so.8.6.0 (8.6.0) is too old" in findings[1].found


def test_a_system_library_beside_the_wheel_warns_and_is_not_blamed_for_its_age(healthy, write):
    write("/usr/lib/x86_64-linux-gnu/libcudnn.so.8.0.5", "")
    assert levels(packages.cudnn(with_packages(healthy, PLUGIN, WHEEL))) == ["WARN", "OK"]


def test_a_library_bundled_by_another_package_is_a_second_provider(healthy, write):
    write("/site-packages/torch/lib/libcudnn.so.9", "")
    findings = list(packages.cudnn(with_packages(healthy, PLUGIN, WHEEL)))
    assert levels(findings) == ["WARN", "OK"]
    assert "torch/lib/libcudnn.so.9" in findings[0].found


def test_two_wheels_warn_that_they_share_a_folder(healthy):
    machine = with_packages(healthy, PLUGIN, WHEEL, package("nvidia-cudnn-cu13", "9.12.0.46"))
    findings = list(packages.cudnn(machine))
    assert levels(findings) == ["WARN", "OK"]
    assert "same folder" in findings[0].found


def test_no_cudnn_at_all_fails(healthy):
    assert levels(packages.cudnn(with_packages(healthy, PLUGIN))) == ["FAIL"]


@pytest.mark.parametrize(
    ("requirement", "version", "verdict"),
    [
        ("x>=1.2", "1.2", 0),
        ("x>=1.2", "1.1.9", -1),
        ("x<2,>=1", "2.0", 1),
        ("x<=1.2", "1.2.0", 0),
        ("x<=1.2", "1.2.1", 1),
        ("x==1.2.*", "1.2.7", 0),
        ("x==1.2.*", "1.3", 1),
        ("x==1.2.3", "1.2.2", -1),
        ("x[extra]>=1.10", "1.9", -1),
        ("x>=1.10", "1.11rc1", 0),
    ],
)
def test_bounds_compare_numbers_and_not_letters(requirement, version, verdict):
    found = packages.bounds(package("owner", "1", "xy>=7", requirement), "x")
    assert found is not None
    assert found.judge(version) == verdict
