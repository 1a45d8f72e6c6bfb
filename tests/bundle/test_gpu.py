"""The archive for a GPU machine: what is packed, with made-up wheels, and what its script says where it cannot run."""

import base64
import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from traceonce.bundle import gpu
from traceonce.bundle.gpu import PROVIDED, Pin, canonical, download, manifest, needed, project_parts, read_list
from traceonce.bundle.output import Part
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.lab import find_root

ROOT = find_root()
SCRIPT = Path(gpu.__file__).with_name("gpu_machine") / "check.py"
THIS = f"{sys.version_info[0]}.{sys.version_info[1]}"


def made_up_wheel(folder, name, files=None, version="1.0"):
    """A wheel with one module that says which package it is."""
    folder.mkdir(parents=True, exist_ok=True)
    content = {f"{name}.py": f"NAME = {name!r}\n"} | (files or {})
    info = f"{name}-{version}.dist-info"
    content |= {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = []
    for place, text in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        rows.append(f"{place},sha256={digest},{len(text.encode())}")
    content[f"{info}/RECORD"] = "\n".join([*rows, f"{info}/RECORD,,", ""])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for place, text in content.items():
            archive.writestr(place, text)
    return path


def sha(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def index(tmp_path, monkeypatch):
    """A folder of wheels in place of an index."""
    folder = tmp_path / "index"
    for name, value in {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(folder), "PIP_CONFIG_FILE": os.devnull}.items():
        monkeypatch.setenv(name, value)
    return folder


# Packing --------------------------------------------------------------------------------------------------------------


def test_a_list_is_read_with_every_hash_and_marker():
    pins = read_list((ROOT / "requirements/dev.txt").read_text())
    assert canonical("Jupyter_Core") in pins
    assert pins["colorama"].marker == "sys_platform == 'win32'"
    text = (ROOT / "requirements/dev.txt").read_text()
    assert sum(len(pin.hashes) for pin in pins.values()) == text.count("--hash=")
    assert len(pins) == len(re.findall(r"^[A-Za-z0-9]", text, re.M))


def test_what_the_checks_need_is_packed_and_what_comes_with_jax_is_not():
    pins = read_list((ROOT / "requirements/dev.txt").read_text())
    names = {pin.name for pin in needed(gpu._ROOTS, pins, "3.12", "x86_64")}
    assert {"nbval", "jupyter-client", "execnet", "jaxtyping", "traitlets"} <= names
    assert not names & PROVIDED
    assert not names & {"colorama", "jupyterlab", "appnope", "ruff"}


def test_a_package_that_no_list_has_is_a_sentence():
    with pytest.raises(TraceOnceError, match=r"nbval is needed and not in requirements/dev\.txt"):
        needed(["nbval"], {}, "3.12", "x86_64")


def test_wheels_come_with_the_hashes_of_the_list(index, tmp_path):
    wheel = made_up_wheel(index, "alpha")
    pins = [Pin("alpha", "1.0", "", (f"sha256:{sha(wheel)}",))]
    (found,) = download(pins, tmp_path / "here", "3.13", "x86_64")
    assert found.read_bytes() == wheel.read_bytes()


def test_a_wheel_that_is_another_one_is_refused(index, tmp_path):
    made_up_wheel(index, "alpha")
    with pytest.raises(TraceOnceError, match=r"not the one that requirements/dev.txt was made for"):
        download([Pin("alpha", "1.0", "", ("sha256:" + "0" * 64,))], tmp_path / "here", "3.12", "x86_64")


def test_a_wheel_that_is_not_to_be_had_is_named(index, tmp_path):
    index.mkdir()
    with pytest.raises(TraceOnceError, match=r"wheels for Python 3\.14 on x86_64 cannot be had .*alpha"):
        download([Pin("alpha", "1.0", "", ("sha256:" + "0" * 64,))], tmp_path / "here", "3.14", "x86_64")


def test_an_unknown_python_or_machine_is_wrong_usage(tmp_path):
    with pytest.raises(UsageError, match=r"Python 3\.9 is not one"):
        gpu.bundle_gpu(out=tmp_path / "a.zip", pythons=["3.9"])
    with pytest.raises(UsageError, match="The machine 'sparc' is not known"):
        gpu.bundle_gpu(out=tmp_path / "a.zip", machine="sparc")


def test_the_archive_holds_the_course_its_tests_and_one_script(index, tmp_path, monkeypatch):
    made_up_wheel(index, "alpha")
    pin = Pin("alpha", "1.0", "", (f"sha256:{sha(index / 'alpha-1.0-py3-none-any.whl')}",))
    monkeypatch.setattr(gpu, "needed", lambda roots, pins, python, machine: [pin])
    ours = {"traceonce-0-py3-none-any.whl": Part(b"ours")}
    monkeypatch.setattr(gpu, "wheel", lambda checkout: ours)
    made = gpu.bundle_gpu(out=tmp_path / "gpu.zip", pythons=["3.12", "3.13"])
    assert (made.wheels, made.pythons) == (2, ("3.12", "3.13"))
    with zipfile.ZipFile(tmp_path / "gpu.zip") as archive:
        names = {name.removeprefix(f"{gpu.TOP}/") for name in archive.namelist()}
        listed = json.loads(archive.read(f"{gpu.TOP}/wheels.json"))
        packed = hashlib.sha256(archive.read(f"{gpu.TOP}/wheels/alpha-1.0-py3-none-any.whl")).hexdigest()
    assert listed["sha256"]["alpha-1.0-py3-none-any.whl"] == packed
    assert listed["pythons"]["3.13"] == ["alpha-1.0-py3-none-any.whl", *ours]
    assert {"check.py", "README.md", "tests/gpu_run.py", "tests/gpu/test_on_gpu.py", "docs/claims.toml"} <= names
    assert {"course/05_retracing/05_retracing.ipynb", "labs/lab01_pure_functions.ipynb"} <= names
    assert len(project_parts(ROOT)) == made.files


# On the machine -------------------------------------------------------------------------------------------------------


@pytest.fixture
def machine(tmp_path):
    """An unpacked archive with made-up wheels, and a Python that has a made-up JAX."""
    place = tmp_path / "unpacked"
    place.mkdir()
    shutil.copy(SCRIPT, place)
    script = {"alpha-1.0.data/data/share/alpha.txt": "data\n"}
    wheel = made_up_wheel(place / "wheels", "alpha", script)
    parts = {wheel.name: Part.of(wheel)}
    (place / "wheels.json").write_text(manifest({THIS: [wheel.name]}, parts, os.uname().machine))
    (place / "tests").mkdir()
    runner = "import sys, alpha, jax\nprint('ran', alpha.NAME, jax.NAME, *sys.argv[1:])\nsys.exit(1)\n"
    (place / "tests" / "gpu_run.py").write_text(runner)
    return place


def with_jax(tmp_path, **versions):
    """A folder of packages as a Python would have it."""
    folder = tmp_path / "machine" / "site-packages"
    for name, version in versions.items():
        with zipfile.ZipFile(made_up_wheel(tmp_path / "of-the-machine", name, version=version)) as archive:
            archive.extractall(folder)
    return folder


def check(place, packages, *arguments):
    """Run the script with a Python that has these packages and no others."""
    start = f"import sys; sys.path.append({str(packages)!r}); sys.argv[0] = 'check.py'; import runpy; runpy.run_path('check.py', run_name='__main__')"
    command = [getattr(sys, "_base_executable", sys.executable), "-I", "-S", "-c", start, *arguments]
    return subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=120, check=False)


def test_it_runs_on_the_machines_own_jax_and_gives_the_exit_code_on(machine, tmp_path):
    packages = with_jax(tmp_path, jax="0.12.0.1", jaxlib="0.11.2", numpy="2.0")
    done = check(machine, packages, "--minutes", "3", "--dry", "--notebooks", "05")
    assert done.returncode == 1, done.stderr
    (ran,) = re.findall(r"^ran .*", done.stdout, re.M)
    assert ran.startswith("ran alpha jax --out ")
    assert ran.endswith("--dry --notebooks 05")
    assert 0 < float(re.search(r"--minutes (\S+)", ran)[1]) <= 3
    assert (machine / "env" / "share" / "alpha.txt").read_text() == "data\n"
    made = (machine / "env" / "made-from").stat().st_mtime_ns
    check(machine, packages, "--out", "elsewhere")
    assert (machine / "env" / "made-from").stat().st_mtime_ns == made, "an environment that is there is used again"


@pytest.mark.parametrize(
    ("versions", "sentence"),
    [
        ({"jax": "0.11.1", "jaxlib": "0.11.1", "numpy": "2.0"}, "jax is 0.11.1 here"),
        ({"jax": "0.13.0", "jaxlib": "0.13.0", "numpy": "2.0"}, "jax is 0.13.0 here"),
        ({"jax": "0.11.2", "jaxlib": "0.10.0", "numpy": "2.0"}, "jaxlib is 0.10.0 here"),
        ({"jax": "0.11.2", "numpy": "2.0"}, "has no jaxlib: start this with the Python"),
        ({}, "has no jax: start this with the Python"),
    ],
)
def test_another_jax_or_none_is_a_sentence_and_exit_code_3(machine, tmp_path, versions, sentence):
    done = check(machine, with_jax(tmp_path, **versions))
    assert done.returncode == 3
    assert sentence in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (machine / "env").exists()


def test_a_wheel_that_was_damaged_on_the_way_is_named(machine, tmp_path):
    (wheel,) = (machine / "wheels").iterdir()
    wheel.write_bytes(wheel.read_bytes() + b"x")
    done = check(machine, with_jax(tmp_path, jax="0.11.2", jaxlib="0.11.2", numpy="2.0"))
    assert done.returncode == 3
    assert f"{wheel.name} is not the file that was packed" in done.stderr


def test_an_archive_for_another_python_or_machine_says_how_to_make_one(machine, tmp_path):
    packages = with_jax(tmp_path, jax="0.11.2", jaxlib="0.11.2", numpy="2.0")
    (machine / "wheels.json").write_text(manifest({"3.99": []}, {}, os.uname().machine))
    assert f"traceonce bundle gpu --python {THIS}" in check(machine, packages).stderr
    (machine / "wheels.json").write_text(manifest({THIS: []}, {}, "sparc"))
    assert "This archive is for Linux on sparc" in check(machine, packages).stderr


def test_results_that_are_there_are_not_written_over(machine, tmp_path):
    (machine / "results").mkdir()
    done = check(machine, with_jax(tmp_path, jax="0.11.2", jaxlib="0.11.2", numpy="2.0"))
    assert done.returncode == 2
    assert "is there already" in done.stderr


def test_an_old_python_gets_a_sentence_before_anything_else(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 11, 4))
    spec = importlib.util.spec_from_file_location("check", SCRIPT)
    with pytest.raises(SystemExit) as ended:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))
    assert ended.value.code == 3
    assert capsys.readouterr().err.startswith("check: Python 3.11 is not supported: start this with a Python 3.12")
