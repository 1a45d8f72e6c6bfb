"""Check Trace Once on this machine's own JAX and GPU, without a network. Needs nothing but a Python that has JAX.

    python3 check.py                    all of it, in at most 8 minutes; results in results/
    python3 check.py --minutes 20       with more time; what did not fit is named
    python3 check.py --dry              on a CPU, to see that all of it works
    python3 check.py --out FOLDER       results elsewhere (a folder that is not there yet)
    python3 check.py --notebooks 05 08  these notebooks alone

An environment is made in env/ beside this file, from the wheels that came with it; it sees the packages of the Python that runs
this, so JAX, jaxlib, CUDA and NumPy are the machine's own, and nothing of the machine is changed.

Exit codes: 0 all of it ran and held, 1 something did not, 2 wrong usage, 3 this machine cannot run it.
"""

import sys

# Read by any Python 3, so that an old one gets a sentence too.
if sys.version_info < (3, 12) or sys.version_info >= (3, 15):
    sys.stderr.write(
        "check: Python {}.{} is not supported: start this with a Python 3.12, 3.13 or 3.14 that has JAX for CUDA.\n".format(
            *sys.version_info
        )
    )
    raise SystemExit(3)

import argparse
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import time
import venv
import zipfile
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
OLDEST, TOO_NEW = (0, 11, 2), (0, 13)
MINUTES = 8.0


def refuse(sentence: str) -> NoReturn:
    """Say why this machine cannot run it."""
    print(f"check: {sentence}", file=sys.stderr)
    raise SystemExit(3)


def release(version: str) -> tuple[int, ...]:
    """The numbers of a version, up to what is not one."""
    numbers = []
    for part in version.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


def check_jax() -> dict[str, str]:
    """The machine's JAX and jaxlib, both within what the course supports."""
    found = {}
    for name in ("jax", "jaxlib", "numpy"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            refuse(f"{sys.executable} has no {name}: start this with the Python in which JAX for CUDA is installed.")
    for name in ("jax", "jaxlib"):
        if not OLDEST <= release(found[name]) < TOO_NEW:
            refuse(
                f"{name} is {found[name]} here, and the stored outputs hold for 0.11.2 up to 0.12: install one of those in a Python of its own."
            )
    return found


def read_manifest() -> dict[str, str]:
    """The wheels for this Python: names and hashes."""
    whole = json.loads((HERE / "wheels.json").read_text("utf-8"))
    python = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if python not in whole["pythons"]:
        refuse(
            f"This archive has wheels for Python {', '.join(whole['pythons'])} and this is {python}: make one with `traceonce bundle gpu --python {python}`."
        )
    if platform.machine() != whole["machine"] or sys.platform != "linux":
        refuse(
            f"This archive is for Linux on {whole['machine']} and this is {sys.platform} on {platform.machine()}: make one with `traceonce bundle gpu --machine`."
        )
    return {name: whole["sha256"][name] for name in whole["pythons"][python]}


def own_folders() -> list[str]:
    """Where this Python has its packages: those of a virtual environment, of the user, of the distribution."""
    return [folder for folder in sys.path if folder and Path(folder).name in ("site-packages", "dist-packages")]


def make_environment(wheels: dict[str, str]) -> Path:
    """An environment in env/ with the wheels unpacked and the machine's own packages behind them; returns its Python."""
    place = HERE / "env"
    made_from = json.dumps([sys.executable, sys.version, own_folders(), wheels])
    stamp = place / "made-from"
    python = place / "bin" / "python"
    if stamp.is_file() and stamp.read_text("utf-8") == made_from:
        return python
    shutil.rmtree(place, ignore_errors=True)
    venv.create(place, with_pip=False, symlinks=True)
    packages = place / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages"
    for name, digest in wheels.items():
        unpack(HERE / "wheels" / name, digest, packages, place)
    # A line that imports is run for each start; it takes the machine's .pth files along, which a plain path would not.
    lines = [f"import site; site.addsitedir({folder!r})" for folder in own_folders()]
    (packages / "zz_machine.pth").write_text("\n".join(lines) + "\n", "utf-8")
    # Processes that may not write, as in the sandbox, would compile everything again at each start.
    subprocess.run(
        [str(python), "-W", "ignore", "-m", "compileall", "-q", "-j", "0", str(packages)],
        stdout=subprocess.DEVNULL,
        check=False,
    )
    stamp.write_text(made_from, "utf-8")
    return python


def unpack(wheel: Path, digest: str, packages: Path, prefix: Path) -> None:
    """Put the files of a wheel where an installer would; its bytes must be those that the archive was made with."""
    content = wheel.read_bytes() if wheel.is_file() else b""
    if hashlib.sha256(content).hexdigest() != digest:
        refuse(f"{wheel} is not the file that was packed: copy the archive here again and unpack it.")
    with zipfile.ZipFile(wheel) as archive:
        for about in archive.infolist():
            first, _, rest = about.filename.partition("/")
            scheme, _, below = rest.partition("/")
            target = packages / about.filename
            if first.endswith(".data"):
                target = {"data": prefix, "scripts": prefix / "bin", "headers": prefix / "include"}.get(
                    scheme, packages
                ) / below
            root = prefix.resolve()
            if about.is_dir() or not target.resolve().is_relative_to(root):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.read(about))


def parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=MINUTES)
    parser.add_argument("--dry", action="store_true")
    parser.add_argument("--out", type=Path, default=HERE / "results")
    parser.add_argument("--notebooks", nargs="*", default=[], metavar="NAME")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    asked = parse(arguments)
    start = time.monotonic()
    if asked.out.exists():
        print(f"check: {asked.out} is there already: move it away, or choose another --out.", file=sys.stderr)
        return 2
    versions = check_jax()
    wheels = read_manifest()
    print(
        f"JAX {versions['jax']}, jaxlib {versions['jaxlib']}, NumPy {versions['numpy']}, Python {platform.python_version()}; making the environment.",
        flush=True,
    )
    python = make_environment(wheels)
    spent = (time.monotonic() - start) / 60
    print(
        f"The environment took {60 * spent:.0f} s; the checks may take {asked.minutes - spent:.1f} minutes.", flush=True
    )
    command = [
        str(python),
        str(HERE / "tests" / "gpu_run.py"),
        "--out",
        str(asked.out),
        "--minutes",
        f"{max(asked.minutes - spent, 0):.3f}",
    ]
    command += ["--dry"] if asked.dry else []
    command += ["--notebooks", *asked.notebooks] if asked.notebooks else []
    # The machine's own PYTHONPATH stays: on some of them JAX is found through it.
    return subprocess.run(
        command, cwd=HERE, env=os.environ | {"VIRTUAL_ENV": str(HERE / "env")}, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
