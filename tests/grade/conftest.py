import json
import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import tinylab

from traceonce.grade import grade_paths

STEP = tinylab.load_lab(tinylab.LAB, root=tinylab.COURSE)["step"].source


def _changed(edit):
    document = tinylab.notebook()
    edit(document["cells"])
    return json.dumps(document)


def _duplicate(cells):
    cells.append({**cells[2], "source": "def double(x):\n    return 3 * x"})


def _twin(cells):
    cells.append(dict(cells[2]))


def _retype(cells):
    cells[2]["cell_type"] = "markdown"


def _reorder(cells):
    cells[2], cells[4] = cells[4], cells[2]


def _remove(cells):
    del cells[4]


# Whole files, written as they are.
FILES = {
    "not_json": "this is no notebook",
    "empty": "",
    "no_cells": json.dumps({"cells": [], "metadata": {}, "nbformat": 4}),
    "deeply_nested": "[" * 100_000,
    "wrong_lab": json.dumps({**tinylab.notebook(), "metadata": {"traceonce": {"lab": "lab91_other"}}}),
    "missing_cell": _changed(_remove),
    "duplicated_cell": _changed(_duplicate),
    "twin_cell": _changed(_twin),
    "retyped_cell": _changed(_retype),
    "reordered_cells": _changed(_reorder),
}

# Cells of the reference replaced: submissions that come to an end by themselves.
CALM = {
    "reference": {},
    "wrong": {"double": "def double(x):\n    return 3 * x"},
    "mutates": {"step": "def step(params, gradient, rate):\n    params['w'] -= rate * gradient\n    return params"},
    "reads_global": {"step": STEP.replace("rate * gradient", "RATE * gradient")},
    "keeps_global_list": {"step": "seen = []\n" + STEP.replace("    return", "    seen.append(1)\n    return")},
    "keeps_attribute": {"step": STEP.replace("    return", "    step.last = rate\n    return")},
    "untouched": {
        "double": "def double(x):\n    raise NotImplementedError",
        "step": "def step(params, gradient, rate):\n    raise NotImplementedError",
    },
    "raises_in_call": {"double": "def double(x):\n    y = x\n    return y[7].nothing"},
    "raises_in_cell": {"double": "def double(x):\n    return 2 * x\n\n1 / 0"},
    "syntax_error": {"double": "def double(x:\n    return 2 * x"},
    "sys_exit": {"double": "import sys\n\ndef double(x):\n    sys.exit(0)\n\nsys.exit(0)"},
    "os_exit_in_cell": {"double": "import os\nos._exit(0)"},
    "os_exit_in_call": {"double": "import os\n\ndef double(x):\n    os._exit(0)"},
    "kills_itself": {"double": "import os, signal\n\ndef double(x):\n    os.kill(os.getpid(), signal.SIGKILL)"},
    "segfaults": {"double": "import ctypes\n\ndef double(x):\n    ctypes.string_at(0)"},
    "untouched_memory": {"double": "x = [bytearray(10**9) for _ in range(100)]"},
    "fork_bomb": {"double": "import os\nwhile True:\n    os.fork()"},
    "thread_bomb": {
        "double": "import threading, time\nwhile True:\n    threading.Thread(target=time.sleep, args=(1000,)).start()"
    },
    "forks_a_copy": {"double": "import os\nos.fork()\n\ndef double(x):\n    return 2 * x"},
    "prints_much": {"double": "print('x' * 10_000_000)\n\ndef double(x):\n    return 2 * x"},
    "warns": {
        "double": "import warnings, sys\n\ndef double(x):\n    warnings.warn('w')\n    sys.stderr.write('e')\n    return 2 * x"
    },
    "magics": {"double": "%matplotlib inline\n%time ready = True\nassert ready\ndef double(x):\n    return 2 * x"},
    "cell_magic": {"double": "%%time\ndef double(x):\n    return 2 * x"},
    "shell": {"double": "def double(x):\n    return 2 * x\n!ls"},
    "returns_function": {"double": "def double(x):\n    return double"},
    "returns_none": {"double": "def double(x):\n    pass"},
    "returns_itself": {"double": "def double(x):\n    around = [x]\n    around.append(around)\n    return around"},
    "returns_huge": {"double": "import numpy as np\n\ndef double(x):\n    return np.ones(20_000_000)"},
    "leaks_tracer": {"double": "kept = []\n\ndef double(x):\n    kept.append(x)\n    return kept[-1] * 2"},
    "returns_leaked_tracer": {
        "double": "import jax\n\ndef double(x):\n    kept = []\n    jax.jit(lambda y: kept.append(y))(x)\n    return kept[0]"
    },
    "forgets_name": {"double": "def doubled(x):\n    return 2 * x"},
    "recompiles": {"double": "import jax\n\ndef double(x):\n    jax.clear_caches()\n    return 2 * x"},
}

# Submissions that end only because a limit ends them.
ENDLESS = {
    "endless_cell": {"double": "while True:\n    pass"},
    "endless_call": {"double": "def double(x):\n    while True:\n        pass"},
    "endless_stubborn": {
        "double": "def double(x):\n    while True:\n        try:\n            while True:\n                pass\n"
        "        except BaseException:\n            pass"
    },
    "endless_reply": {
        "double": "import os, struct, time\n\ndef double(x):\n"
        "    os.write(3, struct.pack('>4sIIQ', b'TO1\\n', 1_000_000, 0, 0))\n"
        "    while True:\n        os.write(3, b'x')\n        time.sleep(0.05)"
    },
    "sleeps_in_c": {"double": "import ctypes\n\ndef double(x):\n    ctypes.PyDLL(None).sleep(10_000)"},
    "endless_everywhere": {
        "double": "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
        "step": "def step(params, gradient, rate):\n    while True:\n        pass",
    },
    "stubborn_fork_bomb": {
        "double": "import os\nwhile True:\n    try:\n        os.fork()\n    except BaseException:\n        pass"
    },
}

# Submissions that take memory until they are stopped.
HUNGRY = {
    "memory_bomb": {"double": "import numpy as np\nkept = []\nwhile True:\n    kept.append(np.ones(16_000_000))"},
    "memory_bomb_in_call": {
        "double": "import numpy as np\n\ndef double(x):\n    kept = []\n    while True:\n        kept.append(np.ones(16_000_000))"
    },
    "memory_kept_after_call": {
        "double": "import numpy as np\nkept = []\n\ndef double(x):\n    while True:\n        kept.append(np.ones(16_000_000))"
    },
    "memory_error_of_its_own": {"double": "def double(x):\n    raise MemoryError"},
}


def _fill(place, cells):
    for name, changes in cells.items():
        tinylab.write(place, name, changes)
    return place


@pytest.fixture(scope="session")
def class_folder(tmp_path_factory):
    """A class's submissions, all kinds of them, that need no limit to come to an end."""
    place = _fill(tmp_path_factory.mktemp("class"), CALM)
    for name, text in FILES.items():
        (place / f"{name}.ipynb").write_text(text)
    (place / "binary.ipynb").write_bytes(b"\xff\xfe\x00" * 100)
    (place / "link.ipynb").symlink_to("/etc/passwd")
    with (place / "huge.ipynb").open("wb") as file:
        file.truncate(100 * 2**20)  # takes no room on the disk
    with zipfile.ZipFile(place / "zipped.ipynb", "w") as packed:
        packed.writestr("../escaped.ipynb", json.dumps(tinylab.notebook()))
    (place / "everything.ipynb").symlink_to("/", target_is_directory=True)
    return place


@pytest.fixture(scope="session")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("grades") / "out"


@pytest.fixture(scope="session")
def calm(class_folder, out):
    """Records of `class_folder` by name; reports are in `out`."""
    records = grade_paths([class_folder], out=out, workers=2, memory_limit=1024, root=tinylab.COURSE)
    return {record.submission: record for record in records}


@pytest.fixture(scope="session")
def endless(tmp_path_factory):
    """Records of submissions that a limit has to end."""
    place = _fill(tmp_path_factory.mktemp("endless"), ENDLESS)
    records = grade_paths([place], out=tmp_path_factory.mktemp("out"), workers=2, time_limit=24, root=tinylab.COURSE)
    return {record.submission: record for record in records}


@pytest.fixture(scope="session")
def hungry(tmp_path_factory):
    """Records of submissions that take all the memory there is; slow machines get time to do so."""
    place = _fill(tmp_path_factory.mktemp("hungry"), HUNGRY)
    records = grade_paths(
        [place], out=tmp_path_factory.mktemp("out"), workers=2, time_limit=180, memory_limit=512, root=tinylab.COURSE
    )
    return {record.submission: record for record in records}
