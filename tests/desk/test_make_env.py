"""`requirements/make_env.sh` against stub Pythons and a stub uv: what it finds, when it installs, what it says."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "requirements"
# All that the script may call besides Python and uv, so that no Python of this machine is on the stubs' PATH.
TOOLS = [
    "awk",
    "cat",
    "cksum",
    "cp",
    "df",
    "dirname",
    "grep",
    "head",
    "ls",
    "mkdir",
    "mv",
    "rm",
    "sed",
    "sh",
    "sleep",
    "sort",
    "tail",
    "tr",
    "uname",
]


def stub_python(path: Path, version: str = "3.12.4", fault: str = "") -> Path:
    """An executable that answers the probe as a Python of this version would, and takes the lock for real."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        f"""#!/bin/sh
case "$*" in
*fcntl*) exec '{sys.executable}' "$@" ;;
*"-m venv"* | *"-m pip"*) exit 1 ;;
*_base_executable*) echo '{version}|{path}|{fault}' ;;
esac
"""
    )
    path.chmod(0o755)
    return path


def failing_shim(path: Path) -> None:
    """What a version manager puts on PATH for a version that is installed and not chosen."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('#!/bin/sh\necho "pyenv: $0: command not found" >&2\nexit 127\n')
    path.chmod(0o755)


@dataclass(frozen=True)
class Machine:
    """A machine that has only what a test puts there, and a project to make an environment for."""

    top: Path

    @property
    def project(self) -> Path:
        return self.top / "a project"

    @property
    def bin(self) -> Path:
        return self.top / "bin"

    @property
    def home(self) -> Path:
        return self.top / "home"

    @property
    def calls(self) -> list[str]:
        """What uv was asked for."""
        path = self.top / "uv-calls"
        return path.read_text().splitlines() if path.exists() else []

    def command(self, *arguments: str) -> list[str]:
        return [str(self.top / "tools" / "sh"), "requirements/make_env.sh", *arguments]

    def environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        path = f"{self.bin}:{self.top / 'more bin'}:{self.top / 'tools'}"
        return {"PATH": path, "HOME": str(self.home), "TOP": str(self.top), **(more or {})}

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*arguments),
            cwd=self.project,
            env=self.environment(environment),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def ready(self, *arguments: str, **environment: str) -> str:
        done = self.run(*arguments, **environment)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    def failing(self, *arguments: str, code: int = 3, **environment: str) -> str:
        """The one sentence with which it failed."""
        done = self.run(*arguments, **environment)
        assert done.returncode == code
        (sentence,) = done.stderr.splitlines()
        return sentence

    def uv_will(self, script: str) -> None:
        """Let the stub uv run this shell code at its next installations."""
        (self.top / "uv-behaviour").write_text(script)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path / "a machine")
    for folder in (machine.bin, machine.home, machine.top / "tools", machine.project / "requirements"):
        folder.mkdir(parents=True)
    for tool in TOOLS:
        (machine.top / "tools" / tool).symlink_to(shutil.which(tool) or "")
    # Places that no user owns lie under the machine's top folder as well.
    script = (SOURCE / "make_env.sh").read_text()
    script = re.sub(r'(?<=[\s"-])/(opt|usr|home|Library)/', f"'{machine.top}'/\\1/", script)
    script = script.replace(f"\"'{machine.top}'/", f"'{machine.top}'\"/").replace(
        f":-'{machine.top}'/", f":-{machine.top}/"
    )
    (machine.project / "requirements" / "make_env.sh").write_text(script)
    for name in ("learn", "dev", "cuda12", "cuda13"):
        (machine.project / "requirements" / f"{name}.txt").write_text(f"{name}==1\n")
    shutil.copy(SOURCE / "bootstrap.txt", machine.project / "requirements")
    (machine.project / "pyproject.toml").write_text(
        '[project]\nname = "x"\nversion = "1"\n\n[tool.ruff]\nline-length = 120\n'
    )
    return machine


def install_uv(machine: Machine, version: str = "0.13.9") -> None:
    stub_python(machine.top / "base" / "python")
    path = machine.bin / "uv"
    path.write_text(
        f"""#!/bin/sh
[ "$1" = --version ] && {{ echo "uv {version} (x86_64)"; exit 0; }}
printf '%s\\n' "$*" >>"$TOP/uv-calls"
case "$*" in
venv*)
    rm -rf .venv
    mkdir -p .venv/bin
    echo 'home = somewhere' >.venv/pyvenv.cfg
    cp "$TOP/base/python" .venv/bin/python
    ;;
*--require-hashes*)
    if [ -f "$TOP/uv-behaviour" ]; then . "$TOP/uv-behaviour"; fi
    ;;
*-e*)
    cp "$TOP/base/python" .venv/bin/traceonce
    ;;
esac
"""
    )
    path.chmod(0o755)


@pytest.fixture
def ready_machine(machine: Machine) -> Machine:
    """A machine with a Python 3.12 and a recent uv on PATH."""
    stub_python(machine.bin / "python3.12")
    install_uv(machine)
    return machine


# --- the Python that is used ---

PLACES = {
    "on PATH by version": ("bin/python3.12", {}),
    "on PATH without one": ("bin/python3", {}),
    "later on PATH": ("more bin/python3.12", {}),
    "pyenv": ("home/.pyenv/versions/3.12.1/bin/python3", {}),
    "pyenv elsewhere": ("pyenv root/versions/3.12.1/bin/python3", {"PYENV_ROOT": "{top}/pyenv root"}),
    "uv": ("home/.local/share/uv/python/cpython-3.12.7-linux-x86_64-gnu/bin/python3", {}),
    "uv elsewhere": ("pythons/cpython-3.12.7-linux-x86_64-gnu/bin/python3", {"UV_PYTHON_INSTALL_DIR": "{top}/pythons"}),
    "asdf": ("home/.asdf/installs/python/3.12.2/bin/python3", {}),
    "mise": ("home/.local/share/mise/installs/python/3.12.2/bin/python3", {}),
    "mise elsewhere": ("data/mise/installs/python/3.12.2/bin/python3", {"XDG_DATA_HOME": "{top}/data"}),
    "rye": ("home/.rye/py/cpython@3.12.3/bin/python3", {}),
    "conda, active": ("conda/bin/python3.12", {"CONDA_PREFIX": "{top}/conda"}),
    "conda": ("home/miniconda3/bin/python3.12", {}),
    "conda environment": ("home/anaconda3/envs/jax/bin/python3.12", {}),
    "conda, system": ("opt/miniconda/bin/python3.12", {}),
    "miniforge": ("home/miniforge3/bin/python3.12", {}),
    "micromamba": ("home/micromamba/envs/jax/bin/python3.12", {}),
    "Homebrew": ("opt/homebrew/bin/python3.12", {}),
    "Homebrew, not linked": ("opt/homebrew/opt/python@3.12/bin/python3.12", {}),
    "Homebrew on Linux": ("home/linuxbrew/.linuxbrew/bin/python3.12", {}),
    "macOS installer": ("Library/Frameworks/Python.framework/Versions/3.12/bin/python3.12", {}),
    "/usr/local": ("usr/local/bin/python3.12", {}),
    "/opt": ("opt/python/bin/python3.12", {}),
}


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_python_is_found_where_it_is_held(place: str, machine: Machine) -> None:
    path, environment = PLACES[place]
    expected = stub_python(machine.top / path)
    failing_shim(machine.bin / "python3.13")
    found = machine.ready("find", **{name: value.format(top=machine.top) for name, value in environment.items()})
    assert found == f"{expected}\n"


@pytest.mark.parametrize(
    "versions", [("3.14.0", "3.13.1", "3.12.0"), ("3.11.9", "3.14.0", "3.13.1"), ("3.15.0", "3.11.9", "3.14.0")]
)
def test_oldest_supported_version_is_preferred(versions: tuple[str, ...], machine: Machine) -> None:
    for version in versions:
        minor = int(version.split(".")[1])
        stub_python(
            machine.home / ".pyenv" / "versions" / version / "bin" / "python3",
            version,
            "" if 12 <= minor <= 14 else "is no good",
        )
    assert machine.ready("find") == f"{machine.home}/.pyenv/versions/{versions[-1]}/bin/python3\n"


def test_failing_shim_on_path_hides_nothing(machine: Machine) -> None:
    failing_shim(machine.bin / "python3.12")
    expected = stub_python(machine.top / "more bin" / "python3.12")
    assert machine.ready("find") == f"{expected}\n"


def test_unversioned_name_counts_as_what_it_is(machine: Machine) -> None:
    expected = stub_python(machine.bin / "python", "3.12.3")
    stub_python(machine.home / ".pyenv" / "versions" / "3.13.0" / "bin" / "python3", "3.13.0")
    assert machine.ready("find") == f"{expected}\n"


def test_no_python_is_a_sentence_that_names_what_was_seen(machine: Machine) -> None:
    failing_shim(machine.bin / "python3.12")
    stub_python(machine.bin / "python3", "3.11.7", "is version 3.11.7")
    assert machine.failing("find") == (
        "make_env: No Python 3.12, 3.13 or 3.14 that runs was found "
        f"({machine.bin}/python3.12 does not run; {machine.bin}/python3 is version 3.11.7): "
        "install one with your package manager or version manager, or name one with PYTHON=/path/to/python, and start again."
    )


def test_named_python_is_used(machine: Machine) -> None:
    stub_python(machine.bin / "python3.12")
    expected = stub_python(machine.top / "my own" / "python", "3.14.1")
    assert machine.ready("find", PYTHON=str(expected)) == f"{expected}\n"


def test_named_python_that_will_not_do_is_a_sentence(machine: Machine) -> None:
    stub_python(machine.bin / "python3.12")
    old = stub_python(machine.bin / "python3", "3.11.7", "is version 3.11.7")
    assert machine.failing("find", PYTHON=str(old)).startswith(
        f"make_env: PYTHON={old} is version 3.11.7: name a Python 3.12"
    )
    assert "PYTHON=nowhere does not run" in machine.failing("find", PYTHON="nowhere")


@pytest.mark.parametrize(
    ("pretence", "fault"),
    [
        ("pass", ""),
        ("sys.version_info = (3, 11, 7, 'final', 0)", "is version 3.11.7"),
        ("sys.version_info = (3, 15, 0, 'final', 0)", "is version 3.15.0"),
        ("sys.implementation.name = 'pypy'", "is not CPython"),
        ("import struct; struct.calcsize = lambda _: 4", "is a 32-bit build"),
        ("import sysconfig; sysconfig.get_config_var = lambda _: 1", "is a free-threaded build"),
        ("sys.modules['ssl'] = None", "was built without ssl"),
        ("sys.modules['sqlite3'] = None", "was built without sqlite3"),
    ],
)
def test_real_python_is_judged_by_what_it_has(pretence: str, fault: str, machine: Machine) -> None:
    path = machine.bin / "python3.12"
    path.write_text(f'#!/bin/sh\nexec \'{sys.executable}\' -I -c "import sys; {pretence}; exec(sys.argv[1])" "$3"\n')
    path.chmod(0o755)
    if fault:
        assert fault in machine.failing("find", PYTHON=str(path))
    else:
        assert Path(machine.ready("find", PYTHON=str(path)).strip()).samefile(sys.executable)


# --- when something is installed ---


def installed_lists(machine: Machine) -> list[list[str]]:
    """The lists of each installation so far."""
    return [re.findall(r"-r requirements/(\w+)\.txt", call) for call in machine.calls if "--require-hashes" in call]


def test_first_run_installs_by_hash_and_the_second_does_nothing(ready_machine: Machine) -> None:
    assert ready_machine.ready("learn").endswith("The environment is ready.\n")
    assert [call.split()[0] for call in ready_machine.calls] == ["venv", "pip", "pip"]
    assert "--require-hashes" in ready_machine.calls[1]
    assert "--no-deps --no-build-isolation" in ready_machine.calls[2]
    assert ready_machine.ready("learn") == ""
    assert len(ready_machine.calls) == 3


def test_changed_list_is_installed(ready_machine: Machine) -> None:
    ready_machine.ready("learn")
    (ready_machine.project / "requirements" / "learn.txt").write_text("learn==2\n")
    assert "up to date" in ready_machine.ready("learn")
    assert installed_lists(ready_machine) == [["learn"], ["learn"]]


def test_changed_project_version_is_installed_and_a_linters_setting_is_not(ready_machine: Machine) -> None:
    ready_machine.ready("learn")
    settings = ready_machine.project / "pyproject.toml"
    settings.write_text(settings.read_text().replace("120", "100"))
    assert ready_machine.ready("learn") == ""
    settings.write_text(settings.read_text().replace('"1"', '"2"'))
    assert ready_machine.ready("learn") != ""


def test_larger_environment_serves_the_smaller_need(ready_machine: Machine) -> None:
    ready_machine.ready("dev")
    assert ready_machine.ready("learn") == ""
    (ready_machine.project / "requirements" / "dev.txt").write_text("dev==2\n")
    ready_machine.ready("learn")
    assert installed_lists(ready_machine) == [["dev"], ["dev"]]


def test_smaller_environment_is_extended_in_place(ready_machine: Machine) -> None:
    ready_machine.ready("learn")
    ready_machine.ready("dev")
    assert installed_lists(ready_machine) == [["learn"], ["dev"]]
    assert sum(call.startswith("venv") for call in ready_machine.calls) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="these wheels are for Linux")
def test_accelerator_stays_until_another_is_asked_for(ready_machine: Machine) -> None:
    ready_machine.ready("learn", ACCELERATOR="cuda13")
    assert ready_machine.ready("learn") == ""
    ready_machine.ready("dev")
    ready_machine.ready("learn", ACCELERATOR="cpu")
    assert installed_lists(ready_machine) == [["learn", "cuda13"], ["dev", "cuda13"], ["dev"]]
    assert sum(call.startswith("venv") for call in ready_machine.calls) == 2


def test_unknown_accelerator_is_a_sentence(ready_machine: Machine) -> None:
    assert ready_machine.failing("learn", code=2, ACCELERATOR="tpu") == (
        "make_env: ACCELERATOR=tpu is not known: use cuda13, cuda12 or cpu."
    )


def test_installation_that_was_killed_is_made_anew(ready_machine: Machine) -> None:
    ready_machine.uv_will("kill -9 $PPID; exit 1")
    assert ready_machine.run("dev").returncode == -9
    ready_machine.uv_will("")
    assert "interrupted" in ready_machine.ready("learn")
    assert installed_lists(ready_machine) == [["dev"], ["dev"]]
    assert sum(call.startswith("venv") for call in ready_machine.calls) == 2
    assert ready_machine.ready("learn") == ""


@pytest.mark.parametrize("gone", [".venv/bin/python", ".venv/bin/traceonce", ".venv/.traceonce-stamp"])
def test_missing_part_is_noticed(gone: str, ready_machine: Machine) -> None:
    ready_machine.ready("learn")
    (ready_machine.project / gone).unlink()
    assert ready_machine.ready("learn").endswith("The environment is ready.\n")


def test_environment_of_a_moved_project_is_made_anew(ready_machine: Machine) -> None:
    ready_machine.ready("learn")
    ready_machine.project.rename(ready_machine.top / "elsewhere")
    shutil.copytree(ready_machine.top / "elsewhere", ready_machine.project.parent / "a project", symlinks=True)
    moved = Machine(ready_machine.top)
    stamp = moved.project / ".venv" / ".traceonce-stamp"
    stamp.write_text(stamp.read_text().replace("a project", "an older place"))
    moved.ready("learn")
    assert sum(call.startswith("venv") for call in moved.calls) == 2


def test_another_python_asked_for_makes_the_environment_anew(ready_machine: Machine) -> None:
    ready_machine.ready("learn")
    other = stub_python(ready_machine.top / "base" / "python", "3.13.1")
    ready_machine.ready("learn", PYTHON=str(other))
    assert f"--python {other}" in [call for call in ready_machine.calls if call.startswith("venv")][1]
    assert ready_machine.ready("learn", PYTHON=str(other)) == ""


def test_runs_at_the_same_time_install_once(ready_machine: Machine) -> None:
    ready_machine.uv_will('mkdir "$TOP/busy" || echo overlap >>"$TOP/uv-calls"; sleep 1; rm -r "$TOP/busy"')
    runs = [
        subprocess.Popen(
            ready_machine.command("learn"),
            cwd=ready_machine.project,
            env=ready_machine.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    printed = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert installed_lists(ready_machine) == [["learn"]]
    assert "overlap" not in ready_machine.calls
    assert sum("The environment is ready." in text for text in printed) == 1


# --- which uv, and which index ---


def test_old_uv_is_not_used_and_none_can_be_fetched(machine: Machine) -> None:
    python = stub_python(machine.bin / "python3.12")
    install_uv(machine, "0.4.30")
    assert machine.failing("learn") == (
        f"make_env: {python} has neither pip nor ensurepip: install your system's python3-venv or python3-pip package, or uv, and start again."
    )
    assert machine.calls == []


def test_pips_index_and_certificates_are_used(ready_machine: Machine) -> None:
    ready_machine.uv_will(
        'echo "index $UV_DEFAULT_INDEX" >>"$TOP/uv-calls"; echo "cert $SSL_CERT_FILE" >>"$TOP/uv-calls"'
    )
    bundle = ready_machine.top / "bundle.pem"
    bundle.write_text("")
    ready_machine.ready("learn", PIP_INDEX_URL="https://mirror.example/simple", PIP_CERT=str(bundle))
    assert "index https://mirror.example/simple" in ready_machine.calls
    assert f"cert {bundle}" in ready_machine.calls


# --- what it says when it cannot ---


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "error: Failed to fetch: error sending request for url",
            "The package index could not be reached: check the network",
        ),
        (
            "error: dns error: failed to lookup address information",
            "The package index could not be reached: check the network",
        ),
        ("error: No space left on device (os error 28)", "There is no space left for the environment: free about"),
        ("error: Hash mismatch for jax==0.11.2", "A downloaded package is not the one that the list was made for"),
        ("jaxlib has no wheels with a matching platform tag", "Some package has no ready-made build for this machine"),
        ("error: Permission denied (os error 13)", "A file could not be written: make the project's folder"),
        ("error: something new", "The packages could not be installed;"),
    ],
)
def test_failed_installation_is_a_sentence_and_a_log(words: str, sentence: str, ready_machine: Machine) -> None:
    ready_machine.uv_will(f"echo '{words}' >&2; exit 2")
    said = ready_machine.failing("learn")
    assert said.startswith(f"make_env: {sentence}")
    assert said.endswith("its own words are in .bootstrap/make_env.log.")
    assert words in (ready_machine.project / ".bootstrap" / "make_env.log").read_text()


def test_full_disk_is_noticed_before_anything_is_fetched(ready_machine: Machine) -> None:
    (ready_machine.bin / "df").write_text("#!/bin/sh\nprintf 'Filesystem\\nnone 20480 0 20480 0%% /\\n'\n")
    (ready_machine.bin / "df").chmod(0o755)
    assert re.search(r"needs about \d+ MB and .* has only 20 MB left: free some", ready_machine.failing("learn"))
    assert ready_machine.calls == []


def test_folder_that_is_no_environment_is_left_alone(ready_machine: Machine) -> None:
    (ready_machine.project / ".venv").mkdir()
    (ready_machine.project / ".venv" / "mine").write_text("")
    assert "is not a Python environment: move it away" in ready_machine.failing("learn")
    assert (ready_machine.project / ".venv" / "mine").exists()


def test_folder_that_is_not_writable_is_a_sentence(ready_machine: Machine) -> None:
    # Root may write everywhere, so root takes the part of somebody else, who must be able to reach the folder.
    other: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as top:
        project = Path(top) / "project"
        shutil.copytree(ready_machine.project, project)
        Path(top).chmod(0o755)
        project.chmod(0o555)
        done = subprocess.run(
            ["/bin/sh", "requirements/make_env.sh", "learn"],
            cwd=project,
            capture_output=True,
            text=True,
            check=False,
            **other,
        )
        project.chmod(0o755)
    assert done.returncode == 3
    assert done.stderr == (
        f"make_env: {project.resolve()} is not writable for you: change its owner or rights, or take a copy of the project that is yours.\n"
    )


def test_lists_hold_no_address_and_every_requirement_a_hash() -> None:
    lists = sorted(SOURCE.glob("*.txt"))
    assert {path.stem for path in lists} == {"bootstrap", "learn", "dev", "latest", "site", "grade", "cuda12", "cuda13"}
    for path in lists:
        text = path.read_text()
        assert "://" not in text
        requirements = re.split(r"\n(?=\w)", text.replace("\\\n", " "))
        pinned = [line for line in requirements if "==" in line]
        assert len(pinned) >= 1
        assert all("--hash=sha256:" in line for line in pinned)


def test_larger_lists_hold_the_learners_versions() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^([\w.-]+==[\w.]+)", (SOURCE / f"{name}.txt").read_text(), re.MULTILINE))

    assert {"jax==0.11.2", "jaxlib==0.11.2"} <= pins("learn")
    for larger in ("dev", "cuda12", "cuda13"):
        assert pins("learn") <= pins(larger)
