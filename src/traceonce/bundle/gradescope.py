"""The autograder archive for Gradescope: one lab, and everything that grading it takes.

::

    setup.sh             makes the environment, once, and grades the reference in it
    run_autograder       grades one submission
    requirements.txt     the locked packages; bootstrap.txt: the installer, locked as well
    traceonce-….whl      this project
    settings.json        the lab, the limits, the isolation that is accepted
    solutions/  tests/hidden/  seed     what `grader_part` says
    README.md            for the teacher
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path

from traceonce.bundle import grader_part
from traceonce.bundle.output import Part, refuse_as_file, write_zip
from traceonce.errors import TraceOnceError, UsageError
from traceonce.grade.lab import find_root
from traceonce.sandbox.handle import NAMESPACES, refuse_unknown_tier

SETTINGS = "settings.json"
GRADER_MB = 256
"""What grading takes beside student code: 130 MB were measured on the labs, judge and JAX's shared pages included."""

LEAST_MEMORY_MB = 512
_LISTS = {"requirements.txt": "requirements/grade.txt", "bootstrap.txt": "requirements/bootstrap.txt"}

_README = """# {lab}, as a Gradescope autograder

Upload this archive as it is. Points: {points:g}. In the assignment's settings:

- **Memory**: a container of at least {container} MB. Student code may use {memory} MB, grading itself takes up to {grader} MB.
- **Timeout**: {timeout} minutes or more. One submission may take {time:g} s, at half a processor twice as long.
- **Isolation**: `{isolation}`, which `docs/grading.md` describes. A container that does not allow it grades nothing: `results.json` then says NOT GRADED
  with a score of 0, which is no grade, and an entry that students do not see says why. Nothing else is taken in its place. Most containers forbid
  namespaces: for those make the archive with `--isolation landlock`, which is weaker. The build of the image grades the reference, and so shows beforehand whether it works.

The archive holds the reference, the hidden asserts and the seed of the random inputs: keep it from students.
Where the environment is there already (`/autograder/traceonce`, or `TRACEONCE_PYTHON`) nothing is fetched, and grading needs no network ever.
"""


@dataclass(frozen=True)
class Settings:
    """What the runner in the archive is told.

    **Arguments**

    - `time_limit`, `memory_limit`: seconds and MB for a submission.
    - `points`: what the lab is worth; `container_mb`: memory that a container needs.
    - `isolation`: the tier that student code runs in. A record of any other is no grade.
    """

    lab: str
    time_limit: float
    memory_limit: int
    points: float
    container_mb: int
    isolation: str = NAMESPACES

    def to_json(self) -> str:
        """As a JSON document."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def read(cls, folder: Path) -> "Settings":
        """From the archive's folder. **Raises**: `TraceOnceError` where they are not there or not whole."""
        try:
            fields = json.loads((folder / SETTINGS).read_text("utf-8"))
            return cls(**fields)
        except (OSError, ValueError, TypeError) as error:
            raise TraceOnceError(f"{folder / SETTINGS} cannot be used ({error}): make the archive anew.") from error


def bundle_gradescope(
    *,
    lab: str,
    out: Path,
    seed_file: Path | None = None,
    time_limit: float = 60.0,
    memory_limit: int = LEAST_MEMORY_MB,
    isolation: str = NAMESPACES,
    force: bool = False,
    root: Path | None = None,
    checkout: Path | None = None,
) -> Settings:
    """Make the archive; returns what it was made with.

    **Arguments**

    - `root`: where the lab and its hidden asserts are. `checkout`: where this project's own sources are.

    **Raises**: `UsageError` for an unknown lab, limits that make no sense, or a file that is there; `TraceOnceError` where it
    cannot be made.
    """
    root = root or find_root()
    checkout = checkout or find_root()
    if not 1 <= time_limit <= 1800:
        raise UsageError(
            "The time limit must be between 1 and 1800 seconds: Gradescope ends a run after 40 minutes at most."
        )
    if memory_limit < LEAST_MEMORY_MB:
        raise UsageError(f"The memory limit must be at least {LEAST_MEMORY_MB} MB.")
    refuse_unknown_tier(isolation)
    refuse_as_file(out, force=force)
    (lab,) = grader_part.chosen_labs([lab], root)
    parts = grader_part.files_of(lab, root)
    points = sum(grader_part.points_by_task(lab, root).values())
    settings = Settings(lab, time_limit, memory_limit, points, memory_limit + GRADER_MB, isolation)
    parts[grader_part.SEED] = grader_part.new_seed(seed_file)
    parts[SETTINGS] = Part.text(settings.to_json())
    for name in ("setup.sh", "run_autograder"):
        parts[name] = Part((files("traceonce.bundle") / "autograder" / name).read_bytes(), 0o755)
    for name, source in _LISTS.items():
        parts[name] = _list(checkout / source)
    parts |= wheel(checkout)
    parts["README.md"] = Part.text(
        _README.format(
            lab=lab,
            points=points,
            container=settings.container_mb,
            memory=memory_limit,
            grader=GRADER_MB,
            time=time_limit,
            timeout=max(10, -(-int(3 * time_limit) // 60)),
            isolation=settings.isolation,
        )
    )
    write_zip(out, parts, force=force)
    return settings


def _list(path: Path) -> Part:
    try:
        return Part.of(path)
    except OSError as error:
        raise TraceOnceError(f"The list {path} cannot be read ({error.strerror}): run this in a checkout.") from error


def wheel(checkout: Path) -> dict[str, Part]:
    """This project as a wheel, by name. Built without a network, by the build backend of this environment.

    **Raises**: `TraceOnceError` where it cannot be built.
    """
    with tempfile.TemporaryDirectory(prefix="traceonce-") as folder:
        command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
        built = subprocess.run(command, cwd=checkout, capture_output=True, text=True, check=False)
        found = list(Path(folder).glob("traceonce-*.whl"))
        if built.returncode != 0 or len(found) != 1:
            last = (built.stderr.strip().splitlines() or ["it says nothing"])[-1]
            raise TraceOnceError(
                f"The project's wheel cannot be built ({last}): run this in a checkout, in the environment of `make env KIND=dev`."
            )
        return {found[0].name: Part(found[0].read_bytes())}
