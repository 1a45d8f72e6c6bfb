"""What `lab.observe`, `lab.fresh` and `lab.peak_mb` see of a submission."""

import pytest
import tinylab

NAME = "lab92_evidence"
CELLS = {
    "train": """
def train(params, rows):
    losses = []
    for row in rows:
        losses.append((params * row).sum())
    return jnp.stack(losses)
""",
    "noise": """
def noise(key, x):
    mask, add = jax.random.split(key)
    keep = jax.random.bernoulli(mask, 0.75, x.shape)
    return keep * x + jax.random.normal(add, x.shape), jax.random.fold_in(key, 1)
""",
    "count": """
calls = []

def count(x):
    calls.append(x)
    return len(calls)

def hold(megabytes):
    return float(np.ones((megabytes, 2**18), "float32").sum())
""",
}
HIDDEN = """
import numpy as np
from traceonce.grade.hidden import Key, graded

def data(lab):
    return lab.rng.normal(size=3).astype("float32"), lab.rng.normal(size=(5, 3)).astype("float32")

@graded(points=1, task="train", title="Reads", hint="It should fetch nothing.")
def test_reads(lab):
    seen = lab.observe("train", *data(lab), repeat=2)
    assert (seen.reads, seen.waits) == (0, 0)

def key(lab):
    return Key("threefry2x32", lab.rng.integers(1, 2**32, 2, dtype=np.uint32))

@graded(points=1, task="noise", title="Keys", hint="A key should be used up once.")
def test_keys(lab):
    given = key(lab)
    seen = lab.observe("noise", given, np.ones(3, "float32"), keys=True)
    assert not seen.reused_keys
    assert [use.key for use in seen.keys if use.kind == "split"] == [tuple(given.data.tolist())]
    assert [use.data for use in seen.keys if use.kind == "fold_in"] == [1]
    assert sum(use.times for use in seen.keys if use.kind == "draw") == 2

@graded(points=1, task="noise", title="Same", hint="It should draw the same.")
def test_watched_keys_draw_the_same(lab):
    given = key(lab)
    watched = lab.observe("noise", given, np.ones(3, "float32"), keys=True, jit=True)
    plain = lab.observe("noise", given, np.ones(3, "float32"), jit=True)
    assert np.allclose(watched.value[0], plain.value[0])
    assert watched.value[1] == plain.value[1]
    assert not plain.keys

@graded(points=1, task="count", title="State", hint="It should begin anew.")
def test_fresh(lab):
    assert [lab.call("count", 1), lab.call("count", 1)] == [1, 2]
    lab.fresh()
    assert lab.call("count", 1) == 1

@graded(points=1, task="count", title="Peak", hint="It should be small.")
def test_peak(lab):
    peaks = []
    for megabytes in (1, 200):
        lab.fresh()
        lab.call("hold", megabytes)
        peaks.append(lab.peak_mb())
    assert 150 < peaks[1] - peaks[0] < 300
"""
SUBMISSIONS = {
    "right": {},
    "reads": {"train": CELLS["train"].replace("append((params * row).sum())", "append(float((params * row).sum()))")},
    "waits": {"train": CELLS["train"].replace("append(", "append(jax.block_until_ready(").replace("sum())", "sum()))")},
    "reuses": {"noise": CELLS["noise"].replace("normal(add", "normal(mask")},
    # What a process writes goes when it goes: the next one has nothing to remember by.
    "writes": {
        "count": """
from pathlib import Path
kept = Path("/scratch/kept")

def count(x):
    kept.write_text((kept.read_text() if kept.exists() else "") + "x")
    return len(kept.read_text())

def hold(megabytes):
    return float(np.ones((megabytes, 2**18), "float32").sum())
"""
    },
    "ends": {"count": "import os\n" + CELLS["count"].replace("calls.append(x)", "os._exit(1)")},
}
LOST = {
    "right": set(),
    "reads": {"test_reads"},
    "waits": {"test_reads"},
    "reuses": {"test_keys"},
    "writes": set(),
    "ends": {"test_fresh"},
}


@pytest.fixture(scope="module")
def failed(tmp_path_factory):
    found = tinylab.grade_lab(tmp_path_factory.mktemp("course"), NAME, CELLS, HIDDEN, SUBMISSIONS)
    return {name: {one.name for one in record.asserts if one.outcome != "passed"} for name, record in found.items()}


@pytest.mark.parametrize("name", LOST)
def test_evidence_tells_one_behaviour_from_another(failed, name):
    assert failed[name] == LOST[name]
