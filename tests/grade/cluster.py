"""A real Dask cluster on this machine: a scheduler and workers, each a process."""

import contextlib
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

START_SECONDS = 120
DASK = [sys.executable, "-m", "dask"]


@dataclass
class Cluster:
    """Its processes by name; what each says goes to a file of that name in `folder`."""

    folder: Path
    tls: tuple[str, ...] = ()
    address: str = ""
    processes: dict[str, subprocess.Popen] = field(default_factory=dict)

    def start(self, name: str, *command: str) -> None:
        """Start a process."""
        # Below its own folder, so that nothing is left in the one that the tests are run in.
        environment = os.environ | {"DASK_TEMPORARY_DIRECTORY": str(self.folder)}
        with (self.folder / name).open("w") as log:
            self.processes[name] = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, cwd=self.folder, env=environment
            )

    def said(self, name: str) -> str:
        """What a process has said."""
        return (self.folder / name).read_text()

    def wait_for(self, name: str, pattern: str) -> re.Match:
        """Wait until a process says something."""
        end = time.monotonic() + START_SECONDS
        while not (found := re.search(pattern, self.said(name))):
            assert self.processes[name].poll() is None, self.said(name)
            assert time.monotonic() < end, self.said(name)
            time.sleep(0.1)
        return found

    def start_scheduler(self) -> None:
        """Start the scheduler, on a free port of this machine alone."""
        protocol = "tls" if self.tls else "tcp"
        options = ["--host", f"{protocol}://127.0.0.1", "--port", "0", "--no-dashboard", *self.tls]
        self.start("scheduler", *DASK, "scheduler", *options)
        self.address = self.wait_for("scheduler", rf"Scheduler at:\s+({protocol}://\S+)")[1]

    def start_worker(self, name: str, *options: str, before: tuple[str, ...] = ()) -> None:
        """Start a worker, and wait until the scheduler has it."""
        known = [
            "--nthreads",
            "1",
            "--no-nanny",
            "--no-dashboard",
            "--local-directory",
            str(self.folder),
            "--name",
            name,
        ]
        self.start(name, *before, *DASK, "worker", self.address, *known, *self.tls, *options)
        self.wait_for(name, r"Registered to:")

    def end(self) -> None:
        """End what still runs, the scheduler last: a worker says goodbye to it."""
        for process in reversed(self.processes.values()):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def cluster(folder: Path, tls: tuple[str, ...] = ()):
    """A scheduler without workers."""
    made = Cluster(folder, tls)
    try:
        made.start_scheduler()
        yield made
    finally:
        made.end()
