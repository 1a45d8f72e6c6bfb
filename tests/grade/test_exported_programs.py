"""Evidence from a program that the submission was exported to, found by a process without student code."""

import pytest
import tinylab

from traceonce.sandbox.limits import Limits

NAME = "lab91_exports"
RIGHT = """
def total(params, x, scale):
    return {"sum": jax.lax.map(lambda row: (row @ params["w"]).sum(), x, batch_size=4).sum() * scale, "rows": x[:2]}
"""
DRAW = """
def draw(key):
    return jax.random.normal(jax.random.fold_in(key, 1), (3,))
"""
HIDDEN = """
import numpy as np
from traceonce.grade.hidden import Key, graded, same_tree

def ask(lab):
    params = {"w": lab.rng.normal(size=(64, 64)).astype("float32")}
    x = lab.rng.normal(size=(32, 64, 64)).astype("float32")
    return params, x, lab.export("total", params, x, 2.0)

@graded(points=1, task="total", title="Value", hint="It should add up.")
def test_value(lab):
    params, x, program = lab.once(ask)
    assert np.allclose(program.value["sum"], 2 * (x.astype("float64") @ params["w"]).sum(), rtol=1e-3, atol=0.5)
    assert same_tree(program.value["rows"], x[:2])

@graded(points=1, task="total", title="Bytes", hint="It should stay small.")
def test_bytes(lab):
    params, x, program = lab.once(ask)
    assert program.complete
    assert 0 <= program.arguments - params["w"].nbytes - x.nbytes <= 4
    assert 4 <= program.outputs - x[:2].nbytes <= 64
    assert program.temporaries < x.nbytes / 2

@graded(points=1, task="total", title="Rows", hint="They should be two.", needs=("test_value",))
def test_rows(lab):
    assert lab.once(ask)[2].value["rows"].shape[0] == 2

@graded(points=1, task="total", title="Operations", hint="It should not be unrolled.")
def test_operations(lab):
    program = lab.plan("total", {"w": np.ones((64, 64), "float32")}, np.ones((32, 64, 64), "float32"), 2.0)
    assert program.value is None
    assert program.operations < 100
    assert sorted(program.shapes) == [(), (2, 64, 64)]

@graded(points=1, task="draw", title="Key", hint="It should draw from the key.")
def test_key(lab):
    key = Key("threefry2x32", np.asarray(lab.rng.integers(2**32, size=2), "uint32"))
    program = lab.export("draw", key)
    assert same_tree(program.value, lab.call("draw", key))
"""
SUBMISSIONS = {
    "right": {},
    "wide": {"total": RIGHT.replace("jax.lax.map", "wide") + "\ndef wide(f, x, batch_size): return jax.vmap(f)(x)"},
    "unrolled": {
        "total": RIGHT.replace("jax.lax.map", "loop")
        + "\ndef loop(f, x, batch_size): return jnp.stack([f(r) for r in x])"
    },
    "wrong": {"total": RIGHT.replace("* scale", "")},
    "float": {"total": RIGHT.replace("return {", "float(x.sum())\n    return {")},
    # What a submission may say of itself makes no difference: it is asked for the program alone.
    "lies": {
        "total": RIGHT.replace("* scale", "")
        + "\nimport traceonce.grade.exporting as e, traceonce.grade.observing as o\n"
        + "o.carry_out = e.carry_out = lambda *a, **k: {'leaves': [], 'shapes': [], 'operations': 1, 'memory': {}}"
    },
    "garbage": {
        "total": "import traceonce.grade.observing as o\no.export = lambda *a: (b'x' * 100, {'sum': 0, 'rows': 1})\n"
        + RIGHT
    },
    "huge": {
        "total": RIGHT.replace("x[:2]}", "jnp.broadcast_to(x[0, 0, 0], (300_000, 3_000)).cumsum(0).cumsum(1)[:2, :2]}")
    },
}
EXPECTED = {
    "right": [],
    "wide": ["test_bytes"],
    "unrolled": ["test_bytes", "test_operations"],
    "wrong": ["test_value", "test_rows"],
    "float": ["test_value", "test_bytes", "test_rows", "test_operations"],
    "lies": ["test_value", "test_rows"],
    "garbage": ["test_value", "test_bytes", "test_rows", "test_operations", "test_key"],
    "huge": ["test_value", "test_bytes", "test_rows", "test_operations"],
}


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    root = tmp_path_factory.mktemp("course")
    return tinylab.grade_lab(root, NAME, {"total": RIGHT, "draw": DRAW}, HIDDEN, SUBMISSIONS, Limits(memory_mb=1500))


@pytest.mark.parametrize("name", SUBMISSIONS)
def test_a_program_is_judged_by_what_it_does(records, name):
    failed = [found.name for found in records[name].asserts if found.outcome != "passed"]
    assert failed == EXPECTED[name], [(found.name, found.note, found.reason) for found in records[name].asserts]


def test_a_program_that_eats_memory_ends_its_own_process_alone(records):
    reasons = {found.name: found.reason for found in records["huge"].asserts if found.reason}
    assert "memory" in reasons["test_value"]
    assert records["huge"].asserts[4].outcome == "passed"


def test_an_assert_that_needs_a_failed_one_could_not_be_checked_and_names_it(records):
    (rows,) = [found for found in records["wrong"].asserts if found.name == "test_rows"]
    assert rows.outcome == "unchecked"
    assert "“Value”" in rows.reason


def test_bytes_that_are_no_program_are_a_reason(records):
    assert records["garbage"].asserts[0].outcome == "failed"
