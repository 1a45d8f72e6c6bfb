"""Hidden asserts of lab 03.

Trees are dicts, lists and `Linear` layers with random values of magnitude 0.5 to 2; shapes are few and fixed, names are drawn.
One fault at a time is planted for `validate_update`, and the message is searched for paths in full. Checkpoints have 3 inputs,
two layers of 4 and 2 scores; their scores are computed here in float64, from PyTorch's layout, and compared with those of the
trees that came back. The averages are exact up to float32 rounding: `TOLERANCE` leaves a factor of fifty.
"""

import re

import ml_dtypes
import numpy as np
import pytest

from traceonce.grade.hidden import Host, Node, StudentError, graded

TOLERANCE = 1e-5
BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


def draw(rng, *shape):
    """Numbers of magnitude 0.5 to 2 and random sign."""
    return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 2.0, shape), "float32")


def word(lab, avoid=()):
    """A name of five letters."""
    while True:
        name = "".join(lab.rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 5))
        if name not in avoid:
            return name


def layer(lab):
    return Node("Linear", {"weight": draw(lab.rng, 2, 3), "bias": draw(lab.rng, 3)})


def tree(lab, names=("encoder", "head", "scale")):
    """A dict with a list of layers and a None, a layer, and a scalar."""
    encoder, head, scale = names
    return {encoder: [layer(lab), None, layer(lab)], head: layer(lab), scale: draw(lab.rng)}


def close(got, expected):
    """Equal within the tolerance, and of the same shape: nothing is broadcast."""
    got = np.asarray(got)
    return got.shape == np.shape(expected) and np.allclose(
        got.astype("float64"), np.float64(expected), rtol=TOLERANCE, atol=TOLERANCE
    )


def part(value, *steps):
    """What lies at a place of a returned tree, or an assert that fails where nothing does."""
    for step in steps:
        if isinstance(value, Node):
            assert step in value.fields
            value = value.fields[step]
        elif isinstance(value, dict):
            assert step in value
            value = value[step]
        else:
            assert isinstance(value, list | tuple)
            assert isinstance(step, int)
            assert step < len(value)
            value = value[step]
    return value


# validate_update ------------------------------------------------------------------------------------------------------


def names_path(said, path):
    """Whether the message has this path in full, and not only as the beginning of another."""
    return re.search(re.escape("params" + path) + r"(?!\w|\[|\.\w)", said) is not None


def refusal(lab, params, grads):
    """The message, where `grads` are refused and `params` themselves are not."""
    assert lab.call("try_update", params, params) is None
    said = lab.call("try_update", params, grads)
    assert isinstance(said, str)
    return said


def fitting(lab):
    """Parameters, and gradients that fit in another order of the dict."""
    params, other = tree(lab), tree(lab)
    return params, dict(reversed(other.items()))


@graded(
    points=1,
    task="validate_update",
    title="A gradient that fits is accepted, in any order of its dict",
    hint="These should be accepted: structure, shapes and dtypes are equal, values differ, and the dict was filled in another "
    "order. JAX sorts the keys of a dict; a walk over items() does not.",
)
def test_fitting_gradients_are_accepted(lab):
    params, grads = fitting(lab)
    # Two entries that differ in dtype: paired by position, they do not fit.
    one = word(lab, avoid=params)
    two = word(lab, avoid=(*params, one))
    params |= {one: np.int32(3), two: draw(lab.rng)}
    grads |= {two: draw(lab.rng), one: np.int32(4)}
    grads = dict(sorted(grads.items(), key=lambda item: -list(params).index(item[0])))
    assert lab.call("try_update", params, grads) is None


@graded(
    points=2,
    task="validate_update",
    title="A shape that would broadcast is refused, with its path",
    hint="The gradient's shape should be exactly the parameter's: a scalar, a 1 or a missing axis broadcasts without an error. "
    "The message should have the path in full, from params to the name of the field.",
)
def test_broadcast_is_refused_by_path(lab):
    for shape in ((), (3,), (1, 3)):
        params = tree(lab)
        grads = tree(lab)
        grads["encoder"][2].fields["weight"] = draw(lab.rng, *shape)
        assert names_path(refusal(lab, params, grads), "['encoder'][2].weight")


@graded(
    points=1,
    task="validate_update",
    title="Another dtype is refused, with its path",
    hint="A leaf of another dtype should be refused even if its shape fits: the update would change the parameter's dtype, or "
    "lose digits. That goes for int8 against int32, too: the kind of a dtype is not the dtype.",
)
def test_dtype_is_refused_by_path(lab):
    params, grads = tree(lab), tree(lab)
    grads["head"].fields["bias"] = grads["head"].bias.astype(BFLOAT16)
    assert names_path(refusal(lab, params, grads), "['head'].bias")
    counter = word(lab, avoid=params)
    said = refusal(lab, tree(lab) | {counter: np.int32(3)}, tree(lab) | {counter: np.int8(3)})
    assert names_path(said, f"['{counter}']")


@graded(
    points=2,
    task="validate_update",
    title="Of a renamed entry, both paths are named",
    hint="A renamed entry is two faults: a leaf that params has and grads has not, and the other way round. The message should "
    "name both; a loop over the leaves of one tree meets one of them.",
)
def test_renamed_entry_is_named_on_both_sides(lab):
    old = word(lab)
    new = word(lab, avoid=(old,))
    params, grads = tree(lab, ("encoder", "head", old)), tree(lab, ("encoder", "head", new))
    said = refusal(lab, params, grads)
    assert names_path(said, f"['{old}']")
    assert names_path(said, f"['{new}']")


@graded(
    points=2,
    task="validate_update",
    title="None is structure, on either side",
    hint="A None in one tree and a leaf in the other do not fit, whichever is which. tree.map(f, params, grads) hands the None of "
    "grads to your function; and leaves() has no None at all. The leaf's path should be in the message.",
)
def test_none_against_a_leaf_is_refused(lab):
    with_leaf, with_none = tree(lab), tree(lab)
    with_none["scale"] = None
    assert names_path(refusal(lab, with_leaf, with_none), "['scale']")
    assert names_path(refusal(lab, with_none, with_leaf), "['scale']")


@graded(
    points=1,
    task="validate_update",
    title="A tuple is no list, and an empty dict is something",
    hint="These trees have the same paths, shapes and dtypes, and should be refused all the same: a tuple stands for a list, or "
    "an empty dict for nothing. Paths do not show that; the structure does.",
)
def test_containers_are_compared(lab):
    params = tree(lab)
    as_tuple = tree(lab)
    as_tuple["encoder"] = tuple(as_tuple["encoder"])
    refusal(lab, params, as_tuple)
    refusal(lab, params, tree(lab) | {word(lab, avoid=params): {}})


@graded(
    points=2,
    task="validate_update",
    title="Every leaf that does not fit is named, and no other",
    hint="With several faults, also of different kinds, all should be named, missing leaves, extra ones, shapes and dtypes: "
    "collect them, and raise once. A leaf that fits should not be in the message.",
)
def test_all_offenders_and_no_other(lab):
    params, grads = tree(lab), tree(lab)
    every = {f"['encoder'][{i}].{name}" for i in (0, 2) for name in ("weight", "bias")}
    every |= {"['head'].weight", "['head'].bias", "['scale']"}
    faults = {"['encoder'][0].bias", "['head'].weight"}
    grads["encoder"][0].fields["bias"] = draw(lab.rng, 1)
    grads["head"].fields["weight"] = draw(lab.rng, 3, 2)
    said = refusal(lab, params, grads)
    assert {path for path in every if names_path(said, path)} == faults

    # To the two shapes a dtype, a name on one side, a name on the other, and a leaf that became a dict.
    old = word(lab, avoid=params)
    new = word(lab, avoid=(*params, old))
    grads["encoder"][2].fields["weight"] = draw(lab.rng, 2, 3).astype(BFLOAT16)
    faults |= {"['encoder'][2].weight", f"['{old}']", f"['{new}']", "['scale']", "['scale']['inner']"}
    said = refusal(lab, params | {old: draw(lab.rng)}, grads | {new: draw(lab.rng), "scale": {"inner": draw(lab.rng)}})
    assert {path for path in every | faults if names_path(said, path)} == faults


@graded(
    points=1,
    task="validate_update",
    title="The check runs inside jit",
    hint="Under jit the leaves are tracers: they have a shape and a dtype, and no values. np.asarray, float or a comparison of "
    "values should not be needed.",
)
def test_check_runs_inside_jit(lab):
    params, grads = fitting(lab)
    assert lab.trace("validate_update", params, grads) == 1


# ema_update -----------------------------------------------------------------------------------------------------------


def plain_average(lab):
    """An average and parameters, filled in the same order, all float32; and what was seen in one update."""
    ema, params = ({"encoder": [layer(lab), None], "head": layer(lab)} for _ in range(2))
    decay = float(lab.rng.uniform(0.6, 0.9))
    return ema, params, decay, lab.observe("ema_update", ema, params, decay)


def average(ema, params, decay):
    return decay * np.float64(ema) + (1 - decay) * np.float64(params)


LEAVES = [("encoder", 0, "weight"), ("encoder", 0, "bias"), ("head", "weight"), ("head", "bias")]


@graded(
    points=1,
    task="ema_update",
    title="Each leaf is decay * ema + (1 - decay) * params",
    hint="The old average should keep the share decay, and the new parameters get the rest. Are the two swapped, or is a leaf left "
    "out?",
)
def test_average_has_the_right_shares(lab):
    ema, params, decay, seen = lab.once(plain_average)
    for place in LEAVES:
        assert close(part(seen.value, *place), average(part(ema, *place), part(params, *place), decay))


@graded(
    points=2,
    task="ema_update",
    title="Leaves find their partners by name",
    hint="The two dicts were filled in different orders, and each leaf should still be averaged with the one of its name. Zipping "
    "values() or items() pairs by insertion; jax.tree.map pairs by structure.",
)
def test_partners_are_found_by_name(lab):
    names = ["first", "second", "third"]
    ema, params = ({name: draw(lab.rng, 3) for name in names} for _ in range(2))
    params = dict(reversed(params.items()))
    value = lab.call("ema_update", ema, params, 0.75)
    for name in names:
        assert close(part(value, name), average(ema[name], params[name], 0.75))
    again = lab.call("ema_update", dict(reversed(ema.items())), params, 0.75)
    for name in names:
        assert close(part(again, name), average(ema[name], params[name], 0.75))


@graded(
    points=2,
    task="ema_update",
    title="The average has the structure of ema",
    hint="Lists should stay lists, layers layers, and None should stay where it was. Taking leaves apart and building dicts from "
    "them loses what has no leaf.",
)
def test_structure_is_kept(lab):
    _, _, _, seen = lab.once(plain_average)
    encoder = part(seen.value, "encoder")
    assert isinstance(encoder, list)
    assert len(encoder) == 2
    assert encoder[1] is None
    assert isinstance(encoder[0], Node)
    assert encoder[0].name == "Linear"


@graded(
    points=2,
    task="ema_update",
    title="Both trees that came in stay as they were",
    hint="The old average should be as it was after the call, at every level: the lists and layers inside are the caller's too. "
    "Build a new tree.",
)
def test_trees_that_came_in_are_left_alone(lab):
    ema, params, _, seen = lab.once(plain_average)
    part(seen.value, "encoder", 0, "weight")
    for after, before in zip(seen.arguments[:2], (ema, params), strict=True):
        for place in LEAVES:
            assert np.array_equal(part(after, *place), part(before, *place))


@graded(
    points=2,
    task="ema_update",
    title="Each leaf keeps the dtype that it has in ema, and counters are taken over",
    hint="The average should have ema's dtype at each leaf: float32 over bfloat16 parameters, and bfloat16 where ema is bfloat16, which "
    "is averaged like others. A leaf of any integer dtype, whatever its name, should be that of params: the average of two counts is no "
    "count. And a float scalar is no counter.",
)
def test_dtypes_and_counters(lab):
    floats = {"deep": "float32", "half": BFLOAT16, "steps": "float32"}  # the last is a scalar
    shapes = {"deep": (3,), "half": (3,), "steps": ()}
    ema = {name: draw(lab.rng, *shapes[name]).astype(dtype) for name, dtype in floats.items()}
    params = {name: -ema[name].astype(dtype) for name, dtype in (floats | {"deep": BFLOAT16}).items()}
    for dtype in ("int32", "uint8"):
        counter = word(lab, avoid=ema)
        ema[counter] = np.asarray(lab.rng.integers(10, 20), dtype)
        params[counter] = np.asarray(ema[counter] + 1, dtype)
    value = lab.call("ema_update", ema, params, np.float32(0.75))
    for name in ema:
        got = np.asarray(part(value, name))
        assert got.dtype == ema[name].dtype
        if name not in floats:
            assert int(got) == int(params[name])
        elif name == "half":
            assert np.allclose(np.float64(got), average(ema[name], params[name], 0.75), rtol=0.05)
        else:
            assert close(got, average(ema[name], params[name], 0.75))


@graded(
    points=1,
    task="ema_update",
    title="The average runs inside jit",
    hint="Under jit the leaves and decay are tracers. float(decay) and np.asarray(leaf) ask for numbers that are not there yet; "
    "what jnp computes needs none.",
)
def test_average_runs_inside_jit(lab):
    ema, params = ({"encoder": [layer(lab), None]} for _ in range(2))
    assert lab.trace("ema_update", ema, params, 0.75) == 1


# Affine ---------------------------------------------------------------------------------------------------------------


def given_affine(lab):
    return draw(lab.rng, 3), draw(lab.rng, 3)


@graded(
    points=2,
    task="affine",
    title="The two arrays are the leaves",
    hint="jax.tree.leaves should give scale and shift, in this order, and nothing else. An unregistered class is one leaf; a static "
    "array is none, and gets no gradient; a name that is a leaf cannot go through jit.",
)
def test_arrays_are_the_leaves(lab):
    scale, shift = given_affine(lab)
    leaves = lab.call("leaves_of", scale, shift, "tanh")
    assert isinstance(leaves, list)
    assert len(leaves) == 2
    assert close(leaves[0], scale)
    assert close(leaves[1], shift)


@graded(
    points=1,
    task="affine",
    title="After a tree.map the object computes with its new leaves",
    hint="The value should be activation(scale * x + shift), with the leaves that tree.map has made. Flattening and unflattening "
    "should use one order, and the name should come back too. It may be the name of any function of jnp: a table knows a few.",
)
def test_object_computes_after_a_map(lab):
    scale, shift = given_affine(lab)
    # Both terms have one sign, so that their sum is away from 0: there tanh and arctan are alike.
    x = np.copysign(draw(lab.rng, 3), scale * shift)
    for name, function in (("tanh", np.tanh), ("arctan", np.arctan)):
        expected = function(2 * np.float64(scale) * x + 2 * np.float64(shift))
        assert close(lab.call("doubled_at", scale, shift, name, x), expected)


@graded(
    points=2,
    task="affine",
    title="New values cost no trace, a new name costs one",
    hint="Only the name should be compared from call to call, and two equal names are equal. Values in the metadata, or a function "
    "that each object makes for itself, are new every time.",
)
def test_only_the_name_is_metadata(lab):
    modules = [(*given_affine(lab), name) for name in ("tanh", "tanh", "sin", "tanh")]
    assert lab.call("traces_of", modules, draw(lab.rng, 3)) == 2


@graded(
    points=1,
    task="affine",
    title="Objects of one name have one structure, and of two names two",
    hint="Two objects of one name should be trees of one structure, and objects of two names should not: tree.map should refuse to pair "
    "a tanh with a sin. Metadata is compared by ==, so let it be the name.",
)
def test_other_name_is_another_structure(lab):
    module = (*given_affine(lab), "tanh")
    assert lab.call("same_structure", module, (*given_affine(lab), "tanh")) is True
    assert lab.call("same_structure", module, (*given_affine(lab), "sin")) is False


@graded(
    points=1,
    task="affine",
    title="Any leaf will do: a tree of shapes is a tree",
    hint="jax.tree.map(jnp.shape, module) should give an object whose fields are shapes. A constructor that checks or converts its "
    "arguments is called with them too.",
)
def test_constructor_takes_any_leaf(lab):
    scale, shift = given_affine(lab)
    shapes = lab.call("shapes_of", scale, shift, "tanh")
    assert all(isinstance(shape, tuple) for shape in shapes[:2])
    assert tuple(shapes) == ((3,), (3,), "tanh")


# convert --------------------------------------------------------------------------------------------------------------


def checkpoint(lab):
    """A state dict of random numbers in PyTorch's layout and order: 3 inputs, 4 and 4 hidden, 2 scores."""
    rng, sizes = lab.rng, {"encoder.0": (4, 3), "encoder.2": (4, 4), "head": (2, 4)}
    linear = {
        name: {f"{name}.weight": draw(rng, *shape), f"{name}.bias": draw(rng, shape[0])}
        for name, shape in sizes.items()
    }
    norm = {f"norm.{name}": draw(rng, 4) for name in ("weight", "bias", "running_mean")}
    norm |= {"norm.running_var": abs(draw(rng, 4)), "norm.num_batches_tracked": np.array(rng.integers(100, 1000))}
    return linear["encoder.0"] | linear["encoder.2"] | norm | linear["head"]


def kept_as_numpy(state_dict):
    return {name: Host(array) for name, array in state_dict.items()}


def one_conversion(lab):
    given = checkpoint(lab)
    return given, lab.observe("convert", kept_as_numpy(given))


def parts_of(value):
    """Parameters and statistics of what `convert` returned."""
    assert isinstance(value, tuple | list)
    assert len(value) == 2
    return value


def hidden_in_torch(given, x):
    """The two layers in PyTorch's layout, in float64."""
    for name in ("encoder.0", "encoder.2"):
        x = np.tanh(x @ np.float64(given[f"{name}.weight"]).T + given[f"{name}.bias"])
    return x


def hidden_of(params, x):
    for place in (0, 2):
        weight, bias = (np.float64(part(params, "encoder", place, name)) for name in ("weight", "bias"))
        assert weight.ndim == 2
        assert weight.shape[0] == x.shape[1]
        x = np.tanh(x @ weight + bias)
    return x


@graded(
    points=2,
    task="convert",
    title="The layers give what they give in PyTorch, the square one too",
    hint="Each linear weight should be transposed, whatever its shape: a square one fits either way, and reshape keeps the order of "
    "the numbers. Compare the outputs of the layers, not their shapes.",
)
def test_layers_have_parity(lab):
    given, seen = lab.once(one_conversion)
    params, _ = parts_of(seen.value)
    rows = np.float64(draw(lab.rng, 5, 3))
    assert close(hidden_of(params, rows), hidden_in_torch(given, rows))
    head = part(params, "head")
    assert close(part(head, "weight"), given["head.weight"].T)
    assert close(part(head, "bias"), given["head.bias"])


@graded(
    points=2,
    task="convert",
    title="The four vectors of the norm keep their meaning",
    hint="scale, shift, mean and var have one shape and one dtype, so nothing but their meaning tells them apart: norm.weight "
    "scales, norm.bias shifts, running_mean and running_var are the statistics, and their numbers stay as they are.",
)
def test_norm_keeps_its_meaning(lab):
    given, seen = lab.once(one_conversion)
    params, stats = parts_of(seen.value)
    for name, place in (("weight", "scale"), ("bias", "shift")):
        assert np.array_equal(part(params, "norm", place), given[f"norm.{name}"])
    for name in ("mean", "var"):
        assert np.array_equal(part(stats, name), given[f"norm.running_{name}"])


@graded(
    points=2,
    task="convert",
    title="What is not trained is not in params",
    hint="params should hold encoder (a list with None for the activations), norm with scale and shift, and head, and no more. "
    "An optimizer would train a running mean that it finds there, and a counter has no gradient: steps should be an integer in stats.",
)
def test_statistics_are_no_parameters(lab):
    given, seen = lab.once(one_conversion)
    params, stats = parts_of(seen.value)
    assert isinstance(params, dict)
    assert sorted(params) == ["encoder", "head", "norm"]
    assert sorted(part(params, "norm")) == ["scale", "shift"]
    assert [entry is None for entry in part(params, "encoder")] == [False, True, False, True]
    assert sorted(stats) == ["mean", "steps", "var"]
    steps = np.asarray(part(stats, "steps"))
    assert steps.dtype.kind == "i"
    assert int(steps) == int(given["norm.num_batches_tracked"])


@graded(
    points=1,
    task="convert",
    title="Entries are found by name, and the dict stays as it was",
    hint="The same entries in another order should give the same trees, and the caller's dict should have them all afterwards. "
    "Positions are not names, and pop takes from the caller.",
)
def test_entries_are_found_by_name(lab):
    given = checkpoint(lab)
    names = sorted(given, key=lambda name: (name[::-1], name))
    seen = lab.observe("convert", kept_as_numpy({name: given[name] for name in names}))
    params, stats = parts_of(seen.value)
    for place, name in ((0, "encoder.0"), (2, "encoder.2")):
        assert close(part(params, "encoder", place, "bias"), given[f"{name}.bias"])
    assert close(part(stats, "var"), given["norm.running_var"])
    assert list(seen.arguments[0]) == names
    assert all(np.array_equal(seen.arguments[0][name], given[name]) for name in names)


@graded(
    points=2,
    task="convert",
    title="A missing entry and an unknown one are refused by name",
    hint="A checkpoint that lacks an entry, or has one for which there is no place, is of another model: a KeyError or ValueError "
    "should name the entry. Zeros in its place, or silence, train on from nowhere.",
)
def test_other_checkpoints_are_refused(lab):
    given = checkpoint(lab)
    lab.call("convert", kept_as_numpy(given))
    unknown = f"{word(lab)}.weight"
    deeper = f"encoder.{lab.rng.integers(4, 10)}.weight"
    others = {name: given | {name: draw(lab.rng, 4, 4)} for name in (unknown, deeper)}
    for lacking in given:
        others[lacking] = {name: array for name, array in given.items() if name != lacking}
    for name, entries in others.items():
        with pytest.raises(StudentError) as caught:
            lab.call("convert", kept_as_numpy(entries))
        assert caught.value.is_a("KeyError", "ValueError")
        assert name in caught.value.message
