"""What the zygote does before it forks. In a process of its own: it may start neither a thread nor a backend."""

import subprocess
import sys

PROGRAM = """
import os
from jax._src import xla_bridge
from traceonce.grade import supervisor
os.environ.update(supervisor.ZYGOTE_ENVIRONMENT)
from traceonce.grade.warm import warm_up
warm_up()
print(sorted(xla_bridge._backends), len(os.listdir("/proc/self/task")), xla_bridge._plugins_registered)
"""


def test_warming_up_starts_no_thread_and_no_backend():
    environment = {"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[]", "1", "True"]
