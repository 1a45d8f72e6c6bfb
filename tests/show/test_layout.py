"""`layout` says which device holds which block, in words and as a picture. Eight devices need a process of their own."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET

import jax
import numpy as np
import pytest

from traceonce import layout

ON_EIGHT = """
import jax, numpy as np
from jax.sharding import NamedSharding, PartitionSpec as P
from traceonce import layout
mesh = jax.make_mesh((4, 2), ("rows", "columns"))
for spec in (P("rows", "columns"), P("rows"), P(None, "columns"), P()):
    print(layout(jax.device_put(np.ones((8, 4), np.float32), NamedSharding(mesh, spec))))
"""


def on_eight_devices(program):
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


def test_each_block_is_named_with_the_devices_that_hold_it():
    both, rows, columns, whole = on_eight_devices(ON_EIGHT).split("float32[8, 4]: ")[1:]
    assert both.splitlines()[:3] == ["128 B, held as 128 B", "  [0:2, 0:2]  device 0", "  [0:2, 2:4]  device 1"]
    assert len(both.splitlines()) == 9
    assert rows.splitlines()[:2] == ["128 B, held as 256 B", "  [0:2, 0:4]  devices 0 1"]
    assert columns.splitlines() == [
        "128 B, held as 512 B",
        "  [0:8, 0:2]  devices 0 2 4 6",
        "  [0:8, 2:4]  devices 1 3 5 7",
    ]
    assert whole.splitlines() == ["128 B, held as 1,024 B", "  [0:8, 0:4]  devices 0 to 7"]


def test_picture_has_a_box_a_block_and_the_words_as_its_description():
    drawn = layout(jax.device_put(np.ones((2, 3), np.float32)))
    root = ET.fromstring(drawn.svg())
    of = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f"{of}rect")) == 1 + len(drawn.blocks) == 2
    assert root.find(f"{of}desc").text == str(drawn)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4)])
def test_any_number_of_axes_has_words_and_up_to_two_a_picture(shape):
    drawn = layout(jax.device_put(np.ones(shape, np.float32)))
    assert str(drawn).count("device 0") == 1
    assert (drawn.svg() is None) == (len(shape) > 2)


def test_what_is_no_array_is_refused():
    with pytest.raises(TypeError, match="takes a JAX array, not ndarray"):
        layout(np.ones(3))
