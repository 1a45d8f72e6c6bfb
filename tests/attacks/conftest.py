import os
import socket
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "grade")]

import tinylab  # noqa: E402
from attack_cells import ATTACKS, READ_ALL_FILES, SEED, WRONG  # noqa: E402

from traceonce.grade import grade_paths  # noqa: E402
from traceonce.grade.breakouts import NETWORK  # noqa: E402


@pytest.fixture(scope="session")
def listener():
    """A server on this machine that an attack tries to reach."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        yield server


@pytest.fixture(scope="session")
def attacked(tmp_path_factory, listener):
    """Records of the attacks by name, and the output folder."""
    place = tmp_path_factory.mktemp("attacks")
    for name, cell in ATTACKS.items():
        tinylab.write(place, name, {"double": cell})
    hidden = tinylab.COURSE / "tests" / "hidden" / f"test_{tinylab.LAB}.py"
    out = tmp_path_factory.mktemp("attacks-out")
    known = {"CANARY_FILE": hidden, "SEED_FILE": place / "seed.txt", "OUT": out}
    files = READ_ALL_FILES
    for name, path in known.items():
        files = files.replace(name, repr(str(path)))
    tinylab.write(place, "read_all_files", {"double": files + WRONG})
    port = listener.getsockname()[1]
    tinylab.write(place, "network", {"double": NETWORK.replace("PORT", str(port)) + WRONG})
    seed_file = place / "seed.txt"
    seed_file.write_text(SEED)
    os.chmod(seed_file, 0o600)
    records = grade_paths([place], out=out, seed_file=seed_file, workers=2, time_limit=300, root=tinylab.COURSE)
    return {record.submission: record for record in records}, out


@pytest.fixture
def printed(attacked):
    """What an attack printed, by its name."""

    def of(name):
        records, _ = attacked
        return next(cell.printed for cell in records[name].cells if cell.grade_id == "double")

    return of
