"""What `import traceonce` costs beyond `import jax`, measured in fresh processes, interleaved.

    python benchmarks/import_time.py [ROUNDS]

Prints the median seconds of each arm and the difference. The budget is 0.1 s, also with the names a lesson uses first.
"""

import statistics
import subprocess
import sys

ARMS = {
    "import jax": "import jax",
    "import jax, traceonce": "import jax, traceonce",
    "... and watch": "import jax; from traceonce import watch",
    "... and watch, chart, predict": "import jax; from traceonce import watch, chart, predict",
}
CLOCK = "import time; _s = time.perf_counter(); {}; print(time.perf_counter() - _s)"


def seconds(statement: str) -> float:
    """Seconds that a statement takes in a fresh interpreter, start-up excluded."""
    run = subprocess.run([sys.executable, "-c", CLOCK.format(statement)], capture_output=True, text=True, check=True)
    return float(run.stdout)


def main(rounds: int) -> None:
    times: dict[str, list[float]] = {arm: [] for arm in ARMS}
    for _ in range(rounds):  # interleaved, so that a slow moment of the machine touches every arm
        for arm, statement in ARMS.items():
            times[arm].append(seconds(statement))
    base = statistics.median(times["import jax"])
    for arm, values in times.items():
        median = statistics.median(values)
        spread = max(values) - min(values)
        print(f"{arm:<32} {median:.3f} s  (spread {spread:.3f})  {median - base:+.3f} s  {median / base:.2f}x")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 7)
