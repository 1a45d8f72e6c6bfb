"""Python and the packages: versions that fit together, GPU plugins, and who provides cuDNN."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from traceonce.doctor.findings import Finding, Level
from traceonce.doctor.machine import Installed, Machine

_SUBJECTS = ("equinox", "optax")
_DESK = ("jupyterlab", "ipywidgets", "anywidget")
_PLUGINS = ("jax-cuda12-plugin", "jax-cuda13-plugin")
_CUDNN_WHEELS = ("nvidia-cudnn-cu11", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13")
_LIBRARY_FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/local/lib",
    "/usr/local/cuda/lib64",
)
_REBUILD = "run `make env` in the course's folder, or in an environment of your own install {}."


def release(version: str) -> tuple[int, ...]:
    """Return the numbers at the front of a version: `(0, 11, 2)` for `0.11.2rc1`."""
    return tuple(int(part) for part in re.findall(r"\d+", (re.match(r"\d+(\.\d+)*", version) or [""])[0]))


@dataclass(frozen=True)
class Bounds:
    """The versions that a requirement allows, as `(comparison, version)` pairs, and the requirement as it is written."""

    text: str
    pairs: tuple[tuple[str, str], ...]

    def judge(self, version: str) -> int:
        """Return -1 for a version that is too old, 1 for one that is too new, 0 for one that fits."""
        for comparison, bound in self.pairs:
            have, want = _padded(release(version), release(bound))
            exact = have[: len(release(bound))] if bound.endswith("*") else have
            wanted = want[: len(release(bound))] if bound.endswith("*") else want
            if comparison in (">=", "==", "~=") and exact < wanted:
                return -1
            if (comparison in ("<=", "==") and exact > wanted) or (comparison == "<" and have >= want):
                return 1
        return 0


def _padded(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    size = max(len(a), len(b))
    return a + (0,) * (size - len(a)), b + (0,) * (size - len(b))


def bounds(owner: Installed | None, name: str) -> Bounds | None:
    """Return what an installed distribution requires of `name`; `None` where it says nothing."""
    for requirement in owner.requires if owner is not None else ():
        text = requirement.partition(";")[0].strip()
        match = re.match(r"([A-Za-z0-9._-]+)(\[[^]]*\])?", text)
        if match is None or match[1].lower().replace("_", "-") != name:
            continue
        pairs = tuple(re.findall(r"(>=|<=|==|~=|<)\s*([\w.*]+)", text[match.end() :]))
        if pairs:
            return Bounds(text, pairs)
    return None


def versions(machine: Machine) -> Iterator[Finding]:
    """Python, JAX and jaxlib, the course's libraries, and the desk."""
    python = ".".join(map(str, machine.python))
    if machine.python >= (3, 12, 0):
        yield Finding("OK", "python", python)
    else:
        yield Finding(
            "FAIL", "python", f"{python} is older than 3.12", "use Python 3.12 or newer; `make env` finds one."
        )
    itself = machine.installed("traceonce")
    if itself is None:
        found = "not installed as a package: which versions it needs is not known here"
        yield Finding("WARN", "traceonce", found, "install it (`make env` does), or run it from where it is installed.")
    else:
        yield Finding("OK", "traceonce", itself.version)
    yield from _jax(machine, itself)
    for name in _SUBJECTS:
        yield _package(machine, itself, name, "FAIL", "")
    for name in _DESK:
        yield _package(machine, itself, name, "WARN", " (only the notebooks need it)")


def _jax(machine: Machine, itself: Installed | None) -> Iterator[Finding]:
    jax, jaxlib = machine.installed("jax"), machine.installed("jaxlib")
    wanted = bounds(itself, "jax")
    text = wanted.text if wanted else "jax"
    if jax is None:
        yield Finding("FAIL", "jax", "not installed", _REBUILD.format(f'"{text}"'))
    elif wanted is not None and wanted.judge(jax.version) < 0:
        found = f"{jax.version} is an old JAX: what the course says of events, caches and memory does not hold there"
        yield Finding("FAIL", "jax", found, _REBUILD.format(f'"{text}"'))
    elif wanted is not None and wanted.judge(jax.version) > 0:
        found = f"{jax.version} is newer than what Trace Once was tried with ({text})"
        yield Finding("WARN", "jax", found, f'if something looks wrong, go back: install "{text}".')
    else:
        yield Finding("OK", "jax", jax.version)
    if jaxlib is None:
        yield Finding("FAIL", "jaxlib", "not installed", _REBUILD.format("jaxlib, which jax requires"))
    elif jax is not None:
        paired = bounds(jax, "jaxlib")
        if paired is not None and paired.judge(jaxlib.version):
            found = f"{jaxlib.version} does not go with jax {jax.version}, which requires {paired.text}"
            yield Finding("FAIL", "jaxlib", found, f'install both together: "jax=={jax.version}" "{paired.text}".')
        else:
            yield Finding("OK", "jaxlib", f"{jaxlib.version}, made for this jax")


def _package(machine: Machine, itself: Installed | None, name: str, level: Level, use: str) -> Finding:
    found, wanted = machine.installed(name), bounds(itself, name)
    text = wanted.text if wanted else name
    if found is None:
        return Finding(level, name, f"not installed{use}", _REBUILD.format(f'"{text}"'))
    if wanted is not None and wanted.judge(found.version):
        return Finding(level, name, f"{found.version} is outside of {text}{use}", _REBUILD.format(f'"{text}"'))
    return Finding("OK", name, found.version)


def _present(machine: Machine, names: tuple[str, ...]) -> list[Installed]:
    return [found for name in names if (found := machine.installed(name)) is not None]


def plugins(machine: Machine) -> Iterator[Finding]:
    """The CUDA plugins of JAX: at most one, and of jaxlib's version; and a GPU that no plugin serves."""
    present = _present(machine, _PLUGINS)
    jaxlib = machine.installed("jaxlib")
    driver = machine.read("/proc/driver/nvidia/version") is not None
    if len(present) > 1:
        names = " and ".join(f"{plugin.name} {plugin.version}" for plugin in present)
        text = f"two of them, {names}: which one JAX takes is left to chance"
        yield Finding(
            "WARN", "GPU plugin", text, f"keep the one for your driver: uninstall {present[0].name} or the other."
        )
    for plugin in present:
        if jaxlib is not None and release(plugin.version) != release(jaxlib.version):
            text = f"{plugin.name} {plugin.version} with jaxlib {jaxlib.version}: JAX leaves it out and runs on the CPU"
            advice = f'install "{plugin.name}[with-cuda]=={jaxlib.version}".'
            yield Finding("FAIL", "GPU plugin", text, advice)
        elif len(present) == 1:
            yield Finding("OK", "GPU plugin", f"{plugin.name} {plugin.version}")
    if not present and driver:
        text = "none, and this machine has an NVIDIA driver: JAX runs on the CPU"
        yield Finding(
            "WARN", "GPU plugin", text, "run `make learn ACCELERATOR=cuda13` (or cuda12 for an older driver)."
        )
    elif not present:
        yield Finding("OK", "GPU plugin", "none, and no NVIDIA driver: JAX runs on the CPU")


def cudnn(machine: Machine) -> Iterator[Finding]:
    """Who provides cuDNN: the loader takes the first one it finds, and a second provider is how a wrong one gets in."""
    wheels = _present(machine, _CUDNN_WHEELS)
    libraries = _cudnn_libraries(machine)
    everything = [f"{wheel.name} {wheel.version}" for wheel in wheels] + [f"{path}" for path, _ in libraries]
    plugin = next(iter(_present(machine, _PLUGINS)), None)
    if plugin is None:
        seen = f" (there is {', '.join(everything)})" if everything else ""
        yield Finding("OK", "cuDNN", f"not used: JAX has no CUDA plugin here{seen}")
        return
    wanted = next((b for name in _CUDNN_WHEELS if (b := bounds(plugin, name)) is not None), None)
    if not everything:
        yield Finding(
            "FAIL", "cuDNN", f"none found, and {plugin.name} needs it", f'install "{plugin.name}[with-cuda]".'
        )
        return
    in_front = [path for path, forced in libraries if forced]
    if in_front and wheels:
        text = (
            f"two providers: {', '.join(everything)}; LD_LIBRARY_PATH puts {in_front[0].parent} in front of the wheel"
        )
        yield Finding("WARN", "cuDNN", text, "unset LD_LIBRARY_PATH for JAX, or take that folder out of it.")
    elif len(wheels) > 1:
        text = f"two wheels that put the same library in the same folder: {', '.join(everything)}"
        yield Finding(
            "WARN", "cuDNN", text, f"uninstall the one that {plugin.name} does not name, then install the other again."
        )
    elif len(everything) > 1:
        text = (
            f"more than one: {', '.join(everything)}; JAX takes its wheel, another library in the same process may not"
        )
        yield Finding("WARN", "cuDNN", text, "if convolutions fail to start, keep JAX in an environment of its own.")
    yield from _cudnn_age(plugin, wanted, wheels, libraries)


def _cudnn_age(
    plugin: Installed, wanted: Bounds | None, wheels: list[Installed], libraries: list[tuple[Path, bool]]
) -> Iterator[Finding]:
    if wanted is None:
        return
    known = [(wheel.name, wheel.version) for wheel in wheels]
    known += [
        (str(path), version) for path, forced in libraries if (forced or not wheels) and (version := _version_in(path))
    ]
    bad = [(name, version) for name, version in known if wanted.judge(version) != 0]
    for name, version in bad:
        age = "too old" if wanted.judge(version) < 0 else "too new"
        yield Finding(
            "FAIL",
            "cuDNN",
            f"{name} ({version}) is {age} for {plugin.name} {plugin.version}",
            f'install "{wanted.text}".',
        )
    if known and not bad:
        yield Finding("OK", "cuDNN", f"{known[0][0]} {known[0][1]}, within {wanted.text}")


def _version_in(path: Path) -> str:
    match = re.search(r"\.so\.(\d+\.\d+[\d.]*)$", path.name)
    return match[1] if match else ""


def _cudnn_libraries(machine: Machine) -> list[tuple[Path, bool]]:
    """cuDNN files outside of NVIDIA's wheels, each with whether `LD_LIBRARY_PATH` names its folder."""
    forced = [entry for entry in machine.environ.get("LD_LIBRARY_PATH", "").split(":") if entry]
    conda = machine.environ.get("CONDA_PREFIX")
    places = [(Path(entry), True) for entry in forced]
    places += [(Path(entry), False) for entry in ((f"{conda}/lib",) if conda else ()) + _LIBRARY_FOLDERS]
    found: dict[Path, tuple[Path, bool]] = {}
    for folder, is_forced in places:
        here = machine.path(folder)
        for path in sorted(here.glob("libcudnn.so*"), key=lambda path: -len(path.name))[:1]:
            real = path.resolve()
            if not any(real.is_relative_to(packages.resolve() / "nvidia") for packages in machine.packages):
                found.setdefault(real, (folder / real.name, is_forced))
    for packages in machine.packages:
        for path in sorted(packages.glob("*/lib/libcudnn.so*"))[:4]:
            found.setdefault(path.resolve(), (path, False))
    return list(found.values())
