"""Hidden asserts of the tests' own lab. HIDDEN-CANARY-5b1f must never be readable from a submission."""

import numpy as np

from traceonce.grade.hidden import graded, same_tree


@graded(points=1, task="double", title="Doubles an array", hint="Multiply by two.")
def test_doubles_an_array(lab):
    x = lab.rng.normal(size=3).astype("float32")
    assert np.allclose(lab.call("double", x), 2 * x)


@graded(points=1, task="double", title="Compiles once", hint="Keep the shape of what you return.")
def test_compiles_once(lab):
    x = lab.rng.normal(size=3).astype("float32")
    seen = lab.observe("double", x, jit=True, repeat=3)
    assert (seen.traces, seen.compiles) == (1, 1)
    assert lab.trace("double", x, repeat=3) == 1


@graded(points=2, task="step", title="Leaves its arguments alone", hint="Build a new dict.")
def test_leaves_arguments_alone(lab):
    params = {"w": lab.rng.normal(size=2).astype("float32")}
    gradient = lab.rng.normal(size=2).astype("float32")
    seen = lab.observe("step", params, gradient, 0.1)
    assert same_tree(seen.arguments[0], params)
    assert same_tree(seen.value, {"w": params["w"] - 0.1 * gradient}, rtol=1e-5, atol=1e-6)


@graded(points=1, task="step", title="Uses the rate it is given", hint="Do not read the rate from a global.")
def test_uses_the_rate_it_is_given(lab):
    params, gradient = {"w": np.float32(1.0)}, np.float32(2.0)
    rate = float(lab.rng.uniform(0.1, 0.4))
    seen = lab.observe("step", params, gradient, rate, globals={"RATE": 100.0})
    assert same_tree(seen.value["w"], np.float32(1 - 2 * rate), rtol=1e-5)
    assert seen.changed_globals == ()
