"""How long a warm `make learn` takes to a served page, beside a plain JupyterLab from the same environment, interleaved.

    python benchmarks/desk.py [ROUNDS]

Prints, for each arm, the median seconds from the start of the process until the page that opens the index has been served, and
the processor seconds that it took, which a busy machine changes less. The budget of a desk is 6 s. The first
line is the part of `make learn` before that: looking whether the environment is up to date.
"""

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
BUDGET_SECONDS = 6.0
TOKEN = "of-the-benchmark"


def environment_check() -> float:
    """Seconds of `make env` when there is nothing to do; it makes the environment first if there is something."""
    for _ in range(2):
        start = time.perf_counter()
        subprocess.run(["make", "--silent", "env"], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def served(command: list[str], address: str) -> tuple[float, float]:
    """Seconds until `address` answers, and the processor seconds spent by then."""
    start = time.perf_counter()
    environment = os.environ | {"JUPYTER_TOKEN": TOKEN}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            while process.poll() is None:
                try:
                    with urllib.request.urlopen(address, timeout=30) as answer:
                        answer.read()
                    seconds = time.perf_counter() - start
                    used = psutil.Process(process.pid).cpu_times()
                    return seconds, used.user + used.system
                except (ConnectionError, urllib.error.URLError):
                    time.sleep(0.02)
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
        finally:
            process.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(rounds: int) -> None:
    check = environment_check()
    print(f"{'make env, nothing to do':<28} {check:.2f} s")
    times: dict[str, list[tuple[float, float]]] = {"traceonce learn": [], "plain jupyter lab": []}
    with tempfile.TemporaryDirectory() as top:
        for number in range(rounds + 1):
            port = free_port()
            desk = [
                sys.executable,
                "-m",
                "traceonce",
                "learn",
                "--no-open",
                "--port",
                str(port),
                "--desk",
                f"{top}/desk",
            ]
            plain = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--port={port}"]
            plain.append(f"--ServerApp.root_dir={top}/desk")
            for arm, command in (("traceonce learn", desk), ("plain jupyter lab", plain)):
                measured = served(command, f"http://127.0.0.1:{port}/lab/tree/index.ipynb?token={TOKEN}")
                if number:  # the first round fills the file cache and makes the desk
                    times[arm].append(measured)
    medians = {arm: statistics.median(seconds for seconds, _ in values) for arm, values in times.items()}
    for arm, values in times.items():
        spent = statistics.median(used for _, used in values)
        spread = max(seconds for seconds, _ in values) - min(seconds for seconds, _ in values)
        ratio = medians[arm] / medians["plain jupyter lab"]
        print(f"{arm:<28} {medians[arm]:.2f} s  (spread {spread:.2f})  {spent:.2f} CPU-s  {ratio:.2f}x")
    whole = check + medians["traceonce learn"]
    print(
        f"warm make learn              {whole:.2f} s of {BUDGET_SECONDS:.0f} s: {'within' if whole <= BUDGET_SECONDS else 'OVER'} budget"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
