"""What one learner takes of a server: memory and processor time of JupyterLab and of the kernels, with lessons executed in it.

    python benchmarks/sizing.py                 lessons 01, 05 and 08, one after the other, each in a kernel of its own
    python benchmarks/sizing.py 01 12           others

A desk is made in a temporary folder and served as `make learn` does; each lesson is started through the server and its cells are sent to
its kernel from the top. Printed are megabytes that stay and at most (the kernel alone, and with the processes that it starts), and
seconds of processor time: figures of the machine that this runs on, for choosing the size of a room's.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psutil
from jupyter_client.blocking import BlockingKernelClient

MB = 2**20
SERVED = "http://127.0.0.1:"  # address-ok: this machine itself


class Peak(threading.Thread):
    """The resident memory of a process, alone and with its children, sampled ten times a second."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self.process = psutil.Process(pid)
        self.alone = self.together = 0
        self.cpu: dict[int, float] = {}
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.1):
            alone = together = 0
            try:
                family = (self.process, *self.process.children(recursive=True))
            except psutil.NoSuchProcess:
                return
            for process in family:
                try:
                    size = process.memory_info().rss
                    times = process.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                alone = size if process is self.process else alone
                together += size
                self.cpu[process.pid] = times.user + times.system
            self.alone, self.together = max(self.alone, alone), max(self.together, together)


def ask(address: str, token: str, body: dict | None = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        address, data, {"Authorization": f"token {token}", "Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return json.load(answer)


def connection_file(kernel: str) -> tuple[Path, int]:
    """Where a kernel says how to reach it, and its process, once both are there."""
    for _ in range(100):
        for process in psutil.process_iter(["cmdline"]):
            for word in process.info["cmdline"] or ():
                if kernel in word and word.endswith(".json") and Path(word).is_file():
                    return Path(word), process.pid
        time.sleep(0.2)
    raise LookupError(f"no process of kernel {kernel}")


def lesson(base: str, token: str, path: Path, desk: Path) -> str:
    """Execute a lesson in a kernel of the server; a line of figures."""
    where = path.relative_to(desk).as_posix()
    body = {"path": where, "name": path.name, "type": "notebook", "kernel": {"name": "python3"}}
    session = ask(f"{base}/api/sessions", token, body)
    file, pid = connection_file(session["kernel"]["id"])
    client = BlockingKernelClient(connection_file=str(file))
    client.load_connection_file()
    client.start_channels()
    for attempt in range(60):  # a kernel that has not begun to answer counts as dead to its client
        try:
            client.wait_for_ready(timeout=120)
            break
        except RuntimeError:
            if attempt == 59:
                raise
            time.sleep(1)
    peak = Peak(pid)
    peak.start()
    start = time.monotonic()
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            client.execute_interactive(
                "".join(cell["source"]), timeout=600, output_hook=lambda message: None, stop_on_error=False
            )
    took = time.monotonic() - start
    time.sleep(0.3)
    left = psutil.Process(pid).memory_info().rss
    peak.stop.set()
    peak.join()
    client.stop_channels()
    figures = (
        f"{left / MB:8.0f} {peak.alone / MB:8.0f} {peak.together / MB:10.0f} {sum(peak.cpu.values()):8.0f} {took:8.0f}"
    )
    request = urllib.request.Request(
        f"{base}/api/sessions/{session['id']}", method="DELETE", headers={"Authorization": f"token {token}"}
    )
    urllib.request.urlopen(request, timeout=60).close()
    return f"{path.stem:<26}{figures}"


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="traceonce-sizing-") as folder:
        desk = Path(folder) / "desk"
        command = [sys.executable, "-m", "traceonce", "learn", "--no-open", "--port", "0", "--desk", str(desk)]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            address = next(word for line in server.stdout for word in line.split() if "token=" in word)
            base = SERVED + address.split(":")[2].split("/")[0]
            token = address.split("token=")[1]
            time.sleep(5)
            print(f"server, no notebook open: {psutil.Process(server.pid).memory_info().rss / MB:.0f} MB", flush=True)
            print(
                f"{'lesson':<26}{'stays MB':>8} {'peak MB':>8} {'+children':>10} {'CPU s':>8} {'took s':>8}", flush=True
            )
            for name in names:
                for path in sorted(desk.glob(f"{name}*/*.ipynb")):
                    print(lesson(base, token, path, desk), flush=True)
            used = psutil.Process(server.pid)
            times = used.cpu_times()
            print(
                f"server at the end: {used.memory_info().rss / MB:.0f} MB, {times.user + times.system:.0f} s of processor time"
            )
        finally:
            server.terminate()
            server.wait(30)


if __name__ == "__main__":
    main(sys.argv[1:] or ["01", "05", "08"])
