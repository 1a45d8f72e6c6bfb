"""What a call changed in the notebook, whatever the student's objects do when they are looked at."""

import pytest
import tinylab

HIDDEN = """
import numpy as np
from traceonce.grade.hidden import graded

@graded(points=1, task="double", title="Nothing is written", hint="It should write no global.")
def test_nothing_is_written(lab):
    x = lab.rng.normal(size=4).astype("float32")
    seen = lab.observe("double", x)
    assert np.allclose(seen.value, 2 * x)
    assert seen.changed_globals == ()
"""
WRITES = {
    "array": "last = jnp.zeros(4)\n\ndef double(x):\n    global last\n    last = x + 0\n    return 2 * x",
    "array_in_dict": "kept = {'x': jnp.zeros(4)}\n\ndef double(x):\n    kept['x'] = kept['x'] + 1\n    return 2 * x",
    "donated": "kept = jnp.zeros(4)\n\ndef double(x):\n    kept.delete()\n    return 2 * x",
    "numpy": "kept = np.zeros(4)\n\ndef double(x):\n    kept[0] += 1\n    return 2 * x",
    "list": "kept = []\n\ndef double(x):\n    kept.append(1)\n    return 2 * x",
    "set": "kept = set()\n\ndef double(x):\n    kept.add(len(kept))\n    return 2 * x",
    "class": "class Count:\n    n = 0\n\ndef double(x):\n    Count.n += 1\n    return 2 * x",
    "instance": "class Count:\n    pass\n\ncount = Count()\ncount.n = 0\n\ndef double(x):\n    count.n += 1\n    return 2 * x",
    "generator": "rng = np.random.default_rng(0)\n\ndef double(x):\n    rng.normal()\n    return 2 * x",
    "default": "def double(x, kept=[]):\n    kept.append(1)\n    return 2 * x",
    "closure": "def make():\n    n = 0\n    def double(x):\n        nonlocal n\n        n += 1\n        return 2 * x\n    return double\n\ndouble = make()",
}
LEAVES_ALONE = {
    "plain": "def double(x):\n    return 2 * x",
    "fields_by_name": "class Config(dict):\n    __getattr__ = dict.__getitem__\n\nconfig = Config(k=2)\n\ndef double(x):\n    return config.k * x",
    "raises_when_looked_at": "class Odd(dict):\n    def items(self):\n        raise OSError\n\nodd = Odd()\n\ndef double(x):\n    return 2 * x",
    "holds_itself": "class Knot:\n    pass\n\nknot = Knot()\nknot.knot = knot\n\ndef double(x):\n    return 2 * x",
    "many_kinds": "import functools, itertools\nkept = {1, 2}, (jnp.ones(3), np.ones(3)), jax.jit(jnp.sin), itertools.count(), np.random.default_rng(0), jax.random.key(0)\n\n"
    "@jax.jit\ndef double(x):\n    return 2 * x",
}


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    answers = {name: {"double": f"\n{text}\n"} for name, text in (WRITES | LEAVES_ALONE).items()}
    reference = {"double": "\ndef double(x):\n    return 2 * x\n"}
    return tinylab.grade_lab(tmp_path_factory.mktemp("globals"), "lab93_globals", reference, HIDDEN, answers)


@pytest.mark.parametrize("name", WRITES)
def test_a_write_is_seen(graded, name):
    assert (graded[name].status, graded[name].score) == ("failed", 0)
    assert "== ()" in graded[name].asserts[0].note  # the value was right


@pytest.mark.parametrize("name", LEAVES_ALONE)
def test_what_was_only_looked_at_is_not_blamed(graded, name):
    assert (graded[name].status, graded[name].score) == ("passed", 1)
