"""Each cause of a compile that people report, produced on purpose, and what `explain` says of it."""

import dataclasses
import functools
import logging
import os
import subprocess
import sys
from collections import OrderedDict
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from traceonce import explain, watch
from traceonce.errors import TraceOnceError
from traceonce.observe import evidence

X = np.ones(3, np.float32)


def causes(explanations):
    """The kinds and paths of the changes, one list for each program made again."""
    return [[(change.cause, change.path) for change in one.changes] for one in explanations]


def test_a_carry_that_starts_weak_comes_back_strong():
    def run(start):
        @jax.jit
        def step(total):
            return total + jnp.float32(1)

        with watch() as seen:
            total = start
            for _ in range(5):
                total = step(total)
        return seen

    weak, strong = run(0.0), run(jnp.float32(0))
    assert weak["step"].traces == 2
    assert causes(explain(weak)) == [[("weak", "total")]]
    assert strong["step"].traces == 1
    assert len(explain(strong)) == 0


def test_asarray_of_a_python_number_is_still_weak():
    step = watch(jax.jit(lambda lr: lr * 2))
    step(jnp.float32(1))
    step(jnp.asarray(1.0))
    (change,) = explain(step)[0].changes
    assert (change.cause, change.old, change.new) == ("weak", "strong float32[]", "weak float32[]")
    assert "jnp.float32" in explain(step)[0].repair


def test_an_integer_carry_no_longer_retraces():
    @jax.jit
    def add(a, b):
        return a + b

    with watch() as seen:
        total = 0
        for i in range(10):
            total = add(total, i)
    assert int(total) == 45
    assert seen["add"].traces == 1


def test_a_lambda_jitted_in_a_loop_is_a_new_function_each_turn():
    def body(x):
        return x + 1

    with watch() as named:
        for _ in range(5):
            jax.jit(body)(X)
    with watch() as fresh:
        for _ in range(5):
            jax.jit(lambda x: body(x))(X)
    assert (named["body"].traces, fresh["<lambda>"].traces) == (1, 5)
    assert causes(explain(fresh)) == [[("function", "")]] * 4
    assert "outside the loop" in explain(fresh)[0].repair


def test_a_bound_method_jitted_in_a_loop_is_a_new_object_each_turn():
    class Model:
        def apply(self, x):
            return x + 1

    model = Model()
    with watch() as seen:
        for _ in range(3):
            jax.jit(model.apply)(X)
    assert seen["apply"].traces == 3
    assert causes(explain(seen)) == [[("function", "")]] * 2
    assert "bound method" in explain(seen)[0].changes[0].new


@pytest.mark.parametrize(("by_value", "traces"), [(False, 3), (True, 1)])
def test_a_settings_object_compared_by_identity_retraces_though_it_prints_alike(by_value, traces):
    options = {"frozen": True} if by_value else {"eq": False}
    settings = dataclasses.make_dataclass("Settings", [("scale", int)], **options)
    step = watch(jax.jit(lambda x, settings: x * settings.scale, static_argnums=1))
    for _ in range(3):
        step(X, settings(2))
    assert step.counts.traces == traces
    assert causes(explain(step)) == [[("static", "settings")]] * (traces - 1)
    if not by_value:
        assert "identity" in explain(step)[0].changes[0].new


def test_an_unhashable_static_argument_raises_jax_own_error():
    settings = dataclasses.make_dataclass("Settings", [("scale", int)])
    step = watch(jax.jit(lambda x, settings: x * settings.scale, static_argnums=1))
    with pytest.raises((TypeError, ValueError), match="hashable"):
        step(X, settings(2))
    assert step.counts.calls == 1


@pytest.mark.parametrize(
    ("wrap", "convert", "traces"),
    [(jax.jit, int, 1), (eqx.filter_jit, int, 10), (eqx.filter_jit, jnp.asarray, 1)],
    ids=["jit, number", "filter_jit, number", "filter_jit, array"],
)
def test_filter_jit_takes_a_python_number_as_static(wrap, convert, traces):
    @watch
    @wrap
    def scale(x, i):
        return x * i

    for i in range(10):
        scale(jnp.ones(2), convert(i))
    assert scale.counts.traces == traces
    assert causes(explain(scale)) == [[("static", "i")]] * (traces - 1)


def test_a_number_in_a_module_that_counts_up_is_named_by_its_field():
    class Model(eqx.Module):
        steps: object

    @eqx.filter_jit
    def step(model):
        return eqx.tree_at(lambda m: m.steps, model, model.steps + 1)

    with watch() as seen:
        model = Model(0)
        for _ in range(4):
            model = step(model)
    found = explain(seen)
    assert causes(found) == [[("static", "model.steps")]] * 3
    assert [(change.old, change.new) for one in found for change in one.changes] == [("0", "1"), ("1", "2"), ("2", "3")]


def test_a_static_field_of_a_module_is_named():
    class Model(eqx.Module):
        weight: jax.Array
        mode: str = eqx.field(static=True)

    step = watch(jax.jit(lambda model: model.weight * 2))
    step(Model(jnp.ones(2), "train"))
    step(Model(jnp.ones(2), "eval"))
    (change,) = explain(step)[0].changes
    assert (change.cause, change.path, change.old, change.new) == ("static", "model.mode", "'train'", "'eval'")


def test_an_equal_optimizer_made_anew_is_another_pair_of_functions():
    @eqx.filter_jit
    def step(opt, params, state):
        updates, state = opt.update(jnp.ones(2), state, params)
        return optax.apply_updates(params, updates), state

    params = jnp.ones(2)
    with watch() as seen:
        for _ in range(3):
            opt = optax.adam(1e-3)
            step(opt, params, opt.init(params))
    assert seen["step"].traces == 3
    assert causes(explain(seen, "step")) == [[("function", "opt.init"), ("function", "opt.update")]] * 2


def test_a_step_defined_again_for_each_learning_rate_is_another_function():
    with watch() as seen:
        for lr in (0.1, 0.2, 0.3):

            @jax.jit
            def step(params, lr=lr):
                return params - lr

            step(X)
    assert seen["step"].traces == 3
    assert causes(explain(seen)) == [[("function", "")]] * 2


def test_committing_an_array_compiles_again_without_a_trace():
    step = watch(jax.jit(lambda x: x + 1))
    a = jnp.zeros(3)
    step(a)
    step(jax.device_put(np.zeros(3, np.float32), a.sharding))
    assert (step.counts.traces, step.counts.compiles) == (1, 2)
    found = explain(step)[0]
    assert (found.step, found.cause) == ("recompile", "committed")
    assert found.changes[0].new.startswith("committed to")
    assert found.doubt == ""


def test_the_short_last_batch_is_found_by_its_shape():
    data = np.ones((10, 2), np.float32)

    @watch
    @jax.jit
    def step(params, batch):
        return (batch["x"] * params).sum()

    for _ in range(2):
        for start in range(0, 10, 4):
            step(jnp.float32(1), {"x": data[start : start + 4]})
    assert (step.counts.calls, step.counts.traces) == (6, 2)
    (found,) = explain(step)
    assert (found.call, causes([found])) == (3, [[("shape", "batch['x']")]])
    assert (found.changes[0].old, found.changes[0].new) == ("float32[4,2]", "float32[2,2]")


def test_the_order_of_a_dict_is_no_change_and_that_of_an_ordered_dict_is():
    step = watch(jax.jit(lambda d: d))
    a = jnp.float32(1)
    step({"a": a, "b": a})
    step({"b": a, "a": a})
    assert step.counts.traces == 1
    step({"a": a, "b": a, "c": a})
    step(OrderedDict(a=a, b=a))
    step(OrderedDict(b=a, a=a))
    assert causes(explain(step)) == [[("leaf", "d['c']")], [("structure", "d")], [("structure", "d")]]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((X,), (X.astype(np.int32),), ("dtype", "x")),
        ((X, None), (X, X), ("leaf", "extra")),
        ((X,), (X, X), ("leaf", "extra")),
        (((X, X),), ([X, X],), ("structure", "x")),
        (({"w": (X, X)},), ({"w": [X, X]},), ("structure", "x['w']")),
        (({"w": X, "b": X},), ({"w": X},), ("leaf", "x['b']")),
        (((X, X),), ((X,),), ("leaf", "x[1]")),
    ],
)
def test_one_change_of_an_argument_is_named_by_its_path(first, second, expected):
    @watch
    @jax.jit
    def step(x, extra=None):
        return jax.tree.map(lambda v: v * 2, x)

    step(*first)
    step(*second)
    assert causes(explain(step)) == [[expected]]


def test_by_position_and_by_keyword_are_two_programs():
    step = watch(jax.jit(lambda x, y: x + y))
    step(X, X)
    step(X, y=X)
    assert causes(explain(step)) == [[("keyword", "y")]]


def test_a_setting_is_named_with_its_values():
    step = watch(jax.jit(lambda x: x @ x))
    step(X)
    with jax.default_matmul_precision("float32"):
        step(X)
    (change,) = explain(step)[0].changes
    assert (change.cause, change.path, change.new) == ("config", "jax_default_matmul_precision", "'float32'")


def test_the_nearest_of_many_earlier_calls_is_chosen():
    step = watch(jax.jit(lambda x, y, mode: x, static_argnames="mode"))
    step(X, X, mode="a")
    step(np.ones(7, np.float32), np.ones((2, 2), np.int32), mode="b")
    step(np.ones(9, np.float32), np.ones((2, 2, 2)), mode="c")
    step(X, np.ones(4, np.float32), mode="a")
    last = explain(step)[-1]
    assert (last.nearest, causes([last])) == (1, [[("shape", "y")]])


def test_a_function_compiled_before_it_was_watched_is_compared_with_its_first_call():
    plain = jax.jit(lambda x: x * 3)
    plain(X)
    step = watch(plain)
    step(X)
    step(np.ones(4, np.float32))
    assert step.counts.compiles == 1
    assert causes(explain(step)) == [[("shape", "x")]]


def test_a_cleared_cache_is_not_guessed_at():
    step = watch(jax.jit(lambda x: x * 3))
    step(X)
    step.clear_cache()
    step(X)
    (found,) = explain(step)
    assert (found.cause, found.changes) == ("unknown", ())
    assert "looks exactly like" in found.doubt
    assert "clear_cache" in found.repair


def test_gradients_outside_jit_compile_the_passes_one_by_one():
    square = jax.jit(lambda x: (x * x).sum())
    with watch() as seen:
        square(X)
        jax.grad(square)(X)
    assert (seen["<lambda>"].traces, seen["<lambda>"].compiles) == (1, 3)
    forward, backward = explain(seen)
    assert (forward.step, forward.cause) == ("recompile", "transform")
    assert "jax.grad" in forward.changes[0].new
    assert (backward.cause, backward.step) == ("unknown", "recompile")
    assert "backward pass" in backward.doubt


def test_a_program_compiled_ahead_of_time_serves_the_call():
    step = watch(jax.jit(lambda x: x * 5))
    with watch() as seen:
        step.lower(X).compile()
        step(X)
        step(np.ones(4, np.float32))
    assert (seen[step].traces, seen[step].compiles, seen[step].calls) == (2, 2, 2)
    assert causes(explain(seen)) == [[("shape", "x")]]


def test_a_function_defined_anew_in_another_record_begins_anew():
    def run():
        step = watch(jax.jit(lambda x: x * 7))
        step(X)
        return explain(step)

    assert [one.step for one in run().all] == ["first"]
    assert [(one.step, one.number) for one in run().all] == [("first", 1)]


def test_a_failed_trace_is_no_program_to_compare_with():
    @watch
    @jax.jit
    def step(x):
        if x.shape == (4,):
            raise ValueError("four")
        return x * 2

    step(X)
    with pytest.raises(ValueError, match="four"):
        step(np.ones(4, np.float32))
    step(np.ones(5, np.float32))
    found = explain(step)
    assert [one.step for one in found.all] == ["first", "failed trace", "retrace"]
    assert found[0].changes[0].old == "float32[3]"


def test_an_argument_that_cannot_be_described_leaves_the_call_alone():
    class Moody:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            return isinstance(other, Moody)

        def __repr__(self):
            raise RuntimeError("no picture")

    step = watch(functools.partial(jax.jit, static_argnums=1)(lambda x, mode: x * 2))
    assert float(step(X, Moody())[0]) == 2.0
    step(np.ones(4, np.float32), Moody())
    assert "no picture" in explain(step)[0].doubt


@pytest.fixture
def log_of_misses():
    """JAX's own log of cache misses, switched on as a user does it."""
    jax.config.update("jax_explain_cache_misses", True)
    yield
    jax.config.update("jax_explain_cache_misses", False)


def test_the_cache_miss_log_of_jax_is_read_where_the_calls_look_alike(log_of_misses, caplog):
    step = watch(jax.jit(lambda x: x * 3))
    step(X)
    step.clear_cache()
    step(X)
    (found,) = explain(step)
    assert (found.source, found.cause, found.log) == ("JAX's log", "unknown", "never seen function")
    assert "cannot tell from the call: the call looks exactly like" in str(found)
    assert "JAX's log says: never seen function" in str(found)
    assert "jax_explain_cache_misses" not in found.repair
    assert "TRACING CACHE MISS" in caplog.text  # the user still gets it


def test_the_log_is_not_asked_where_the_calls_differ(log_of_misses):
    step = watch(jax.jit(lambda x: x * 3))
    step(X)
    step(np.ones(4, np.float32))
    (found,) = explain(step)
    assert (found.source, found.cause, found.log) == ("signature", "shape", "")


def test_what_the_log_says_of_a_function_inside_is_not_taken_for_that_of_the_outer_one(log_of_misses):
    inner = jax.jit(lambda x: x + 1)
    outer = watch(jax.jit(lambda x: inner(x) * 2))
    outer(X)
    outer.clear_cache()
    inner.clear_cache()
    inner(np.ones(4, np.float32))
    outer(X)
    assert [one.log for one in explain(outer)] == ["never seen function"]


def test_a_message_belongs_to_the_function_of_its_name_and_place():
    key = evidence.FunctionKey("step", "a.py", 5)
    says = [
        evidence.Miss(name, place, "") for name, place in (("step", "a.py:5"), ("step", "a.py:6"), ("go", "a.py:5"))
    ]
    assert [evidence.is_of(miss, key) for miss in says] == [True, False, False]


def test_without_the_log_nothing_is_said_for_it_and_the_repair_names_it():
    step = watch(jax.jit(lambda x: x * 3))
    step(X)
    step.clear_cache()
    step(X)
    (found,) = explain(step)
    assert (found.source, found.log) == ("", "")
    assert "jax_explain_cache_misses" in found.repair


def test_nothing_listens_to_the_log_after_a_block():
    logger = logging.getLogger("jax._src.interpreters.partial_eval")
    before = len(logger.filters)
    with watch(), watch():
        assert len(logger.filters) >= 1
    assert len(logger.filters) == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Finished tracing",
        "TRACING CACHE MISS at a.py:1 (f):",
        "TRACING CACHE MISS at a.py:1 (f):\n  a JAX that words it in another way",
    ],
)
def test_a_message_that_is_written_in_another_way_says_nothing(text):
    assert evidence.miss_of(text) is None


def test_what_the_log_says_of_a_type_is_kept_line_by_line():
    found = evidence.miss_of(
        "TRACING CACHE MISS at a.py:6:6 (<module>):\n  for step defined at a.py:5\n"
        "  all previously seen cache keys differ. For the closest previous key:\n"
        "  different input types:\n  * at x, now f32[4] and before f32[3]"
    )
    assert (found.name, found.place) == ("step", "a.py:5")
    assert found.says.splitlines()[1:] == ["different input types:", "* at x, now f32[4] and before f32[3]"]


def test_a_compile_under_a_transformation_is_not_said_to_be_without_a_trace():
    bodies = 0

    @jax.jit
    def step(x):
        nonlocal bodies
        bodies += 1
        return (x * x).sum()

    with watch() as seen:
        for rows in (2, 3):
            jax.vmap(step)(jnp.ones((4, rows)))
    # JAX reports no trace of a call under vmap or grad, though the body runs.
    assert (bodies, seen["step"].traces, seen["step"].compiles) == (2, 0, 2)
    (found,) = explain(seen)
    assert (found.cause, found.step, found.trace_known, found.doubt) == ("shape", "recompile", False, "")
    assert "compiled again; JAX reports no trace here, whether there was one or not" in str(found)
    assert "without a trace" not in str(found)


def test_both_passes_of_a_gradient_through_filter_jit_belong_to_one_function():
    @eqx.filter_jit
    def solve(y, rate):
        return jax.lax.scan(lambda c, _: (c * rate, None), y, None, length=3)[0].sum()

    with watch() as seen:
        for _ in range(2):
            eqx.filter_grad(lambda y: solve(y, 2.0))(jnp.ones(3))
    assert [key.name for key in seen] == ["solve"]
    assert (seen["solve"].traces, seen["solve"].compiles) == (0, 2)
    (backward,) = explain(seen)
    assert (backward.cause, backward.trace_known) == ("unknown", False)
    assert "backward pass" in backward.doubt


def test_a_backward_pass_is_given_to_none_of_two_functions_of_one_name():
    def make(factor):
        @eqx.filter_jit
        def solve(y):
            return (y * y * factor).sum()

        return solve

    def other():
        @eqx.filter_jit
        def solve(y):
            return (y * y * y).sum()

        return solve

    with watch() as seen:
        jax.grad(make(2.0))(jnp.ones(3))
        jax.grad(other())(jnp.ones(3))
    assert sum(seen[key.name].compiles for key in set(seen)) == 3 * 4
    assert sorted(key.file == __file__ for key in seen) == [False, True, True]


def test_by_keyword_is_no_change_for_filter_jit():
    step = watch(eqx.filter_jit(lambda x, y, *, z: x + y))
    step(X, X, z=X)
    step(X, y=X, z=X)
    assert step.counts.traces == 1
    step(y=np.ones(1, np.float32), x=X, z=X)
    assert causes(explain(step)) == [[("shape", "y")]]


def test_a_mesh_in_the_context_is_named():
    step = watch(jax.jit(lambda x: x + 1))
    step(X)
    with jax.set_mesh(jax.make_mesh((1,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))):
        step(X)
    (change,) = explain(step)[0].changes
    assert (change.cause, "mesh" in change.path, "rows" in change.new) == ("config", True, True)


TWO_DEVICES = """
import jax, numpy as np
from traceonce import explain, watch
step = watch(jax.jit(lambda x: x + 1))
for device in jax.devices():
    step(jax.device_put(np.ones(3, np.float32), device))
print(step.counts.traces, step.counts.compiles, [(c.cause, c.path) for one in explain(step) for c in one.changes])
"""


def test_an_array_placed_on_another_device_is_named():
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", TWO_DEVICES], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    assert ran.stdout.strip() == "1 2 [('sharding', 'x')]"


EIGHT_DEVICES = """
import jax, numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
from traceonce import explain, watch
x = np.ones((16, 8), np.float32)
for kind in (AxisType.Explicit, AxisType.Auto):
    step = watch(jax.jit(lambda x: x + 1))
    mesh = jax.make_mesh((8,), ("rows",), axis_types=(kind,))
    step(x)
    for spec in (P(), P("rows"), P("rows", None), P(None, "rows")):
        step(jax.device_put(x, NamedSharding(mesh, spec)))
    for one in explain(step):
        print(one.step, *map(str, one.changes), one.doubt)
"""


def test_a_layout_in_the_type_explains_a_retrace_and_another_one_a_compile():
    """Explicit axes stand in the type, so that each layout is traced; automatic ones do not, and a mesh of either kind does."""
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    ran = subprocess.run(
        [sys.executable, "-c", EIGHT_DEVICES], env=environment, capture_output=True, text=True, check=True, timeout=120
    )
    placed = ["P() on (rows=8)", "P('rows') on (rows=8)", "P(None, 'rows') on (rows=8)"]
    changes = [f"sharding x: {before} -> {after} " for before, after in pairwise(placed)]
    lines = ran.stdout.splitlines()
    assert lines[1:3] == [f"retrace {change}" for change in changes]
    assert lines[4:] == [f"recompile {change}" for change in changes]
    for line in (lines[0], lines[3]):
        assert line == f"retrace committed x: uncommitted -> committed to {placed[0]} "


def test_what_is_printed_names_program_call_path_and_repair():
    @watch
    @jax.jit
    def step(params, x):
        return params["w"] * x

    step({"w": X}, X)
    step({"w": X}, X)
    step({"w": np.ones((2, 3), np.float32)}, X)
    assert str(explain(step)) == (
        "step, program 2, call 3: traced and compiled again (compared with program 1)\n"
        "  shape  params['w']: float32[3] -> float32[2,3]\n"
        "  Each shape is a program of its own: keep one shape (pad and mask, or drop the short batch), or a few."
    )


def test_explain_refuses_what_was_not_watched():
    with pytest.raises(TraceOnceError, match="watch it first"):
        explain(jax.jit(lambda x: x))
