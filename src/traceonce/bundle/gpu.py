"""The checks for a GPU machine without a network that already has JAX for CUDA: wheels, course, tests and one script.

::

    check.py             the script: makes an environment beside the machine's own JAX, runs the checks, writes results
    wheels.json          which wheels go with which Python, with their hashes
    wheels/              of what the tests need; JAX and what comes with it (`PROVIDED`) is the machine's own
    course/ solutions/ labs/ tests/ docs/ pyproject.toml   what is checked, and what checks it

Versions and hashes come from ``requirements/dev.txt``; which packages are needed, from the metadata of this environment.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires
from importlib.resources import files
from pathlib import Path

from traceonce.author.course import Course
from traceonce.bundle.gradescope import wheel
from traceonce.bundle.output import Part, refuse_as_file, write_zip
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.lab import find_root

TOP = "trace-once-gpu"
"""The folder that the archive unpacks to."""

PROVIDED = frozenset({"jax", "jaxlib", "numpy", "scipy", "ml-dtypes", "opt-einsum"})
"""What a machine with JAX for CUDA has; the check is of those, so none of them is packed."""

PYTHONS = ("3.12", "3.13", "3.14")
MACHINES = ("x86_64", "aarch64")

# What the checks import, with what each of these requires.
_ROOTS = (
    "anywidget",
    "equinox",
    "flatbuffers",
    "hypothesis",
    "ipykernel",
    "ipywidgets",
    "nbformat",
    "nbval",
    "optax",
    "platformdirs",
    "psutil",
    "pytest",
    "pytest-xdist",
    "rich",
    "typer",
)
_FOLDERS = ("course", "solutions", "labs", "tests", "docs", "benchmarks")
_FILES = ("pyproject.toml", "LICENSE", "LICENSE-COURSE")
_PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9_.-]+)==(?P<version>[^\s;\\]+)(?P<marker>\s*;[^\\\n]*)?(?P<hashes>(?:\s*\\\n\s+--hash=\S+)+)",
    re.M,
)


@dataclass(frozen=True)
class Pin:
    """One package of a list: its line up to the hashes, and the hashes."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]

    def __str__(self) -> str:
        return " \\\n    ".join([f"{self.name}=={self.version}", *(f"--hash={value}" for value in self.hashes)])


@dataclass(frozen=True)
class Made:
    """What went into an archive: files of the project, wheels, and the Pythons that the wheels are for."""

    files: int
    wheels: int
    pythons: tuple[str, ...]


def canonical(name: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_list(text: str) -> dict[str, Pin]:
    """The packages of a hash-locked list, by canonical name."""
    return {
        canonical(found["name"]): Pin(
            canonical(found["name"]),
            found["version"],
            (found["marker"] or "").strip(" ;"),
            tuple(re.findall(r"--hash=(\S+)", found["hashes"])),
        )
        for found in _PIN.finditer(text)
    }


def target(python: str, machine: str) -> dict[str, str]:
    """The environment of a Linux machine, for the markers of requirements."""
    return {
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": machine,
        "platform_python_implementation": "CPython",
        "platform_system": "Linux",
        "python_full_version": f"{python}.0",
        "python_version": python,
        "sys_platform": "linux",
        "extra": "",
    }


def needed(roots: Iterable[str], pins: Mapping[str, Pin], python: str, machine: str) -> list[Pin]:
    """The packages that `roots` take on a machine, without those that it has.

    **Raises**: `TraceOnceError` for one that is not installed here, whose requirements are therefore not known, or not in the list.
    """
    from packaging.requirements import Requirement

    environment = target(python, machine)
    found: dict[str, Pin] = {}
    waiting = [(canonical(root), frozenset[str]()) for root in roots]
    done = set()
    while waiting:
        name, extras = waiting.pop()
        if name in PROVIDED or (name, extras) in done:
            continue
        done.add((name, extras))
        if name not in pins:
            raise TraceOnceError(f"{name} is needed and not in requirements/dev.txt: run `make pins`.")
        found[name] = pins[name]
        try:
            required = [Requirement(text) for text in requires(name) or ()]
        except PackageNotFoundError as error:
            raise TraceOnceError(
                f"{name} is not installed here: run this in the environment of `make env KIND=dev`."
            ) from error
        for one in required:
            asked = ("", *extras)
            if one.marker is None or any(one.marker.evaluate(environment | {"extra": extra}) for extra in asked):
                waiting.append((canonical(one.name), frozenset(one.extras)))
    return [found[name] for name in sorted(found)]


def find_pip() -> list[str]:
    """The call of a pip; environments made by uv have none of their own. **Raises**: `TraceOnceError` where there is none."""
    base = getattr(sys, "_base_executable", sys.executable)
    for python in (sys.executable, base, "python3", "python"):
        command = [python, "-m", "pip"]
        try:
            if subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0:
                return command
        except OSError:
            continue
    raise TraceOnceError("No Python here has pip, which fetches the wheels: install your system's python3-pip package.")


def download(pins: Sequence[Pin], folder: Path, python: str, machine: str) -> list[Path]:
    """Fetch the wheels of a list into a folder, each checked against its hashes; returns them by name.

    **Raises**: `TraceOnceError` with pip's own words where one cannot be had, or is not the one that the list was made for.
    """
    folder.mkdir(parents=True, exist_ok=True)
    listed = folder / "list.txt"
    listed.write_text("\n".join(map(str, pins)) + "\n", "utf-8")
    short = python.replace(".", "")
    command = [*find_pip(), "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]
    command += [
        "--require-hashes",
        "-r",
        str(listed),
        "-d",
        str(folder),
        "--python-version",
        python,
        "--implementation",
        "cp",
    ]
    for abi in (f"cp{short}", "abi3", "none"):
        command += ["--abi", abi]
    for minor in range(28, 4, -1):  # of the C library; JAX's own wheels ask for 2.27 or newer
        command += ["--platform", f"manylinux_2_{minor}_{machine}"]
    command += ["--platform", f"manylinux2014_{machine}", "--platform", f"linux_{machine}", "--platform", "any"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    listed.unlink()
    if ran.returncode != 0:
        words = (
            [line for line in ran.stderr.splitlines() if line.startswith("ERROR")]
            or ran.stderr.splitlines()
            or ["it says nothing"]
        )
        if "DO NOT MATCH THE HASHES" in ran.stderr:
            raise TraceOnceError(
                "A wheel is not the one that requirements/dev.txt was made for: check which index pip is set up for."
            )
        raise TraceOnceError(
            f"The wheels for Python {python} on {machine} cannot be had ({words[0].strip()}): check the index, or leave that Python out."
        )
    found = sorted(folder.glob("*.whl"))
    if len(found) != len(pins):
        raise TraceOnceError(
            f"pip fetched {len(found)} wheels of {len(pins)} for Python {python}: empty its cache and try again."
        )
    return found


def bundle_gpu(
    *,
    out: Path,
    pythons: Sequence[str] = PYTHONS,
    machine: str = "x86_64",
    force: bool = False,
    checkout: Path | None = None,
) -> Made:
    """Make the archive; returns what is in it.

    **Raises**: `UsageError` for a Python or machine that is not known, or a file that is there; `TraceOnceError` where a wheel
    cannot be had.
    """
    checkout = checkout or find_root()
    if unknown := [python for python in pythons if python not in PYTHONS]:
        raise UsageError(f"Python {unknown[0]} is not one that the course supports: choose from {', '.join(PYTHONS)}.")
    if machine not in MACHINES:
        raise UsageError(f"The machine {machine!r} is not known: choose from {', '.join(MACHINES)}.")
    refuse_as_file(out, force=force)
    try:
        pins = read_list((checkout / "requirements/dev.txt").read_text("utf-8"))
    except OSError as error:
        raise TraceOnceError(
            f"The list {checkout / 'requirements/dev.txt'} cannot be read ({error.strerror}): run this in a checkout."
        ) from error
    with tempfile.TemporaryDirectory(prefix="traceonce-gpu-") as folder:
        fetched = {
            python: download(needed(_ROOTS, pins, python, machine), Path(folder) / python, python, machine)
            for python in pythons
        }
        wheels = {path.name: Part.of(path) for paths in fetched.values() for path in paths}
    ours = wheel(checkout)
    listing = {python: sorted([*(path.name for path in paths), *ours]) for python, paths in fetched.items()}
    parts = project_parts(checkout)
    made = Made(len(parts), len(wheels) + len(ours), tuple(pythons))
    parts |= {f"wheels/{name}": part for name, part in (wheels | ours).items()}
    parts["wheels.json"] = Part.text(manifest(listing, wheels | ours, machine))
    for name in ("check.py", "README.md"):
        parts[name] = Part((files("traceonce.bundle") / "gpu_machine" / name).read_bytes())
    write_zip(out, {f"{TOP}/{name}": part for name, part in parts.items()}, force=force)
    return made


def manifest(listing: Mapping[str, Sequence[str]], wheels: Mapping[str, Part], machine: str) -> str:
    """Which wheels go with which Python, and the hash of each."""
    hashes = {name: hashlib.sha256(part.content).hexdigest() for name, part in sorted(wheels.items())}
    return (
        json.dumps(
            {
                "machine": machine,
                "pythons": {python: list(names) for python, names in listing.items()},
                "sha256": hashes,
            },
            indent=1,
        )
        + "\n"
    )


def project_parts(checkout: Path) -> dict[str, Part]:
    """What is checked and what checks it: the committed files of the course, the labs and the tests, by their place."""
    names = [name for name in Course(checkout).tracked_files() if name.parts[0] in _FOLDERS or str(name) in _FILES]
    return {name.as_posix(): Part.of(checkout / name) for name in names if not (checkout / name).is_symlink()}
