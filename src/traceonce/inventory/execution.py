"""What the code of each question prints, found by running it. The right answer is never written by hand.

All snippets run in one child process, each in a namespace of its own, on eight CPU devices beside whatever the machine has.
An exception is an answer too: `it raises NameError`.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from traceonce.errors import TraceOnceError
from traceonce.inventory.questions import Question

PREAMBLE = "import jax\nimport jax.numpy as jnp\nimport numpy as np\n"
_SECONDS = 300


def measure(questions: Sequence[Question]) -> dict[str, str]:
    """Question id -> what its code printed, in a fresh process.

    **Raises**: `TraceOnceError` where the process did not come back with an answer to each.
    """
    job = json.dumps({question.id: question.code for question in questions})
    with tempfile.TemporaryDirectory(prefix="traceonce-inventory-") as folder:
        done = subprocess.run(
            [sys.executable, "-m", "traceonce.inventory.execution"],
            input=job,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
            cwd=folder,
            env=os.environ | {"TRACEONCE_PROGRESS": str(Path(folder) / "progress.json")},
        )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise TraceOnceError(f"The inventory's code did not run (exit code {done.returncode}): {last}", exit_code=1)
    answers: dict[str, str] = json.loads(done.stdout)
    return answers


def printed(codes: Mapping[str, str]) -> dict[str, str]:
    """What each piece of code prints in this process, or the name of the exception that ends it."""
    found = {}
    for name, code in codes.items():
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                exec(compile(PREAMBLE + code, f"<question {name}>", "exec"), {"__name__": name})
            except Exception as error:  # noqa: BLE001  whatever the code raises is what is asked for
                print(f"it raises {type(error).__name__}")
        found[name] = said.getvalue().strip()
    return found


def main() -> None:
    """Answer the questions on standard input, as JSON."""
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
    json.dump(printed(json.load(sys.stdin)), sys.stdout)


if __name__ == "__main__":
    main()
