"""Hidden asserts of lab 11: layouts, values against one device, and collectives in the compiled programs.

Counts of collectives come from the submission's process. Each stands beside an assert on values or layouts that the same mistakes
break, but for the number of all-reduces, which changes no value.
"""

import numpy as np
import pytest

from traceonce.data import digits
from traceonce.grade.hidden import Host, Key, StudentError, graded

PIXELS, LABELS = digits()
BATCH, DEVICES = 64, 8
WHOLE, ROWS = (), ("data",)


def close(got, expected, atol=2e-5):
    return np.shape(got) == np.shape(expected) and np.allclose(
        np.float64(got), np.float64(expected), rtol=1e-4, atol=atol
    )


def random_params(lab):
    return {
        "w": lab.rng.normal(0, 0.3, (64, 10)).astype("float32"),
        "b": lab.rng.normal(0, 0.5, 10).astype("float32"),
    }


def hosted(params):
    """NumPy in the submission, too: cutting a JAX array for the devices would be one more program."""
    return {name: Host(leaf) for name, leaf in params.items()}


def some_rows(lab, count):
    rows = lab.rng.choice(len(PIXELS), count, replace=False)
    return PIXELS[rows], LABELS[rows]


# place ----------------------------------------------------------------------------------------------------------------


def a_placed_batch(lab):
    """13 rows, and what `place` makes of them."""
    return placed(lab, 13)


def placed(lab, count):
    params, (x, y) = random_params(lab), some_rows(lab, count)
    values, how = lab.call("placed", hosted(params), Host(x), Host(y))
    return params, x, y, values, how


@graded(
    points=2,
    task="place",
    title="Each device has an eighth of the rows",
    hint="x, y and valid should lie in eight different blocks of rows on eight devices. A copy on each device is eight times the "
    "work, a leading axis of eight is an axis and no hardware (vmap does not place anything), and columns are not rows.",
)
def test_each_device_has_an_eighth_of_the_rows(lab):
    *_, how = lab.once(a_placed_batch)
    for lies, block in zip(how[1:], ((8, 64), (8,), (8,)), strict=True):
        assert lies["devices"] == DEVICES
        assert tuple(lies["block"]) == block
        assert not lies["whole"]


@graded(
    points=2,
    task="place",
    title="Each device has all of the parameters",
    hint="w and b should be whole on each of the eight devices: P(). Cut, they are gathered at every step; left where they were, "
    "the first step takes another layout than the second.",
)
def test_parameters_are_whole_on_each_device(lab):
    *_, how = lab.once(a_placed_batch)
    for name, block in (("w", (64, 10)), ("b", (10,))):
        assert how[0][name]["devices"] == DEVICES
        assert how[0][name]["whole"]
        assert tuple(how[0][name]["block"]) == block


@graded(
    points=1,
    task="place",
    title="Placing changes no value and no order",
    hint="The rows should come first and in their order, then zeros, and the parameters should be what they were.",
)
def test_placing_changes_no_value(lab):
    params, x, y, (of_params, got_x, got_y, _), _ = lab.once(a_placed_batch)
    assert np.array_equal(got_x[: len(x)], x)
    assert not np.asarray(got_x[len(x) :]).any()
    assert np.array_equal(got_y[: len(y)], y)
    assert all(np.array_equal(of_params[name], leaf) for name, leaf in params.items())


@graded(
    points=1,
    task="place",
    title="Any number of rows becomes one shape, and valid says which are real",
    hint="A batch of 1 to BATCH rows should become BATCH rows: not the next multiple of eight, which is a new shape each time, and "
    "not BATCH rows for each device. valid should be True for the real rows alone.",
)
def test_any_number_of_rows_becomes_one_shape(lab):
    for count in (1, 13, BATCH):
        *_, (_, x, y, valid), _ = lab.once(a_placed_batch) if count == 13 else placed(lab, count)
        assert np.shape(x) == (BATCH, 64)
        assert np.shape(y) == (BATCH,)
        assert np.asarray(valid).tolist() == [row < count for row in range(BATCH)]


# train_step -----------------------------------------------------------------------------------------------------------


def full_batch(lab):
    x, y = some_rows(lab, BATCH)
    return x, y, np.ones(BATCH, bool)


def uneven_batch(lab):
    """Valid rows on every device, and on each another number of them; digits stand in the other rows, too."""
    x, y = some_rows(lab, BATCH)
    valid = np.zeros(BATCH, bool)
    for device, count in enumerate(lab.rng.permutation(np.arange(1, DEVICES + 1))):
        valid[device * 8 + lab.rng.choice(8, count, replace=False)] = True
    return x, y, valid


def short_batch(lab):
    """Valid rows on the first two devices alone."""
    x, y = some_rows(lab, BATCH)
    valid = np.arange(BATCH) < 11
    return np.where(valid[:, None], x, 0).astype("float32"), np.where(valid, y, 0).astype("int32"), valid


def expected_step(params, x, y, valid, lr):
    """The new parameters, loss and accuracy of one device, in float64."""
    w, b = np.float64(params["w"]), np.float64(params["b"])
    scores = np.float64(x[valid]) @ w + b
    scores -= scores.max(axis=1, keepdims=True)
    chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    loss = -np.log(chances[np.arange(len(chances)), y[valid]]).mean()
    slope = (chances - np.eye(10)[y[valid]]) / len(chances)
    new = {"w": w - lr * np.float64(x[valid]).T @ slope, "b": b - lr * slope.sum(axis=0)}
    return new, loss, np.mean(scores.argmax(axis=1) == y[valid])


def stepped(lab, batch, steps=1):
    """Steps of the submission on a batch, and what one device gives for the first and the last of them."""
    params, lr = random_params(lab), round(float(lab.rng.uniform(0.2, 0.6)), 3)
    x, y, valid = batch
    # What is not valid is right, so that counting it shows.
    batch = x, np.where(valid, y, (x @ params["w"] + params["b"]).argmax(axis=1)).astype("int32"), valid
    seen = lab.observe("steps_on", hosted(params), [Host(part) for part in batch], lr, steps, WHOLE, ROWS)
    expected = []
    for _ in range(steps):
        params, *metrics = expected_step(params, *batch, lr)
        expected.append(metrics)
    return seen, params, expected


def two_steps(lab):
    """Two steps on a full batch: the first that the submission takes."""
    return stepped(lab, full_batch(lab), steps=2)


def uneven_step(lab):
    return stepped(lab, uneven_batch(lab))


def same_params(got, expected):
    return got.keys() == expected.keys() and all(close(got[name], expected[name]) for name in expected)


@graded(
    points=3,
    task="train_step",
    title="A full batch moves the parameters as one device does",
    hint="With all rows valid, two steps should give the parameters of one device. Eight times too far: the gradient was summed by "
    "grad already, or never divided. Another direction: one device's gradient was taken for all (the check of shard_map "
    "is for that).",
)
def test_full_batch_moves_as_one_device(lab):
    seen, params, _ = lab.once(two_steps)
    assert same_params(seen.value[0], params)


@graded(
    points=3,
    task="train_step",
    title="Each valid row has the same weight, on whichever device it is",
    hint="Loss and gradient should be means over all valid rows of the batch. A mean of local means gives a row on a device with "
    "few rows more weight: add up sums and counts over the devices, and divide once. BATCH is not the count.",
)
def test_rows_have_equal_weight(lab):
    seen, params, ((loss, _),) = lab.once(uneven_step)
    assert same_params(seen.value[0], params)
    assert close(seen.value[1][0]["loss"], loss)


@graded(
    points=2,
    task="train_step",
    title="A device without a valid row changes nothing",
    hint="With valid rows on two devices alone, parameters and loss should be finite and those of these rows. A local mean is 0 / 0 "
    "on the others, and a count that is kept away from 0 on each device counts rows that are not there.",
)
def test_empty_devices_change_nothing(lab):
    seen, params, ((loss, _),) = stepped(lab, short_batch(lab))
    assert same_params(seen.value[0], params)
    assert close(seen.value[1][0]["loss"], loss)


@graded(
    points=1,
    task="train_step",
    title="The loss is that of the whole batch, before the update",
    hint="The loss of each step should be the mean over the batch on all devices, with the parameters that came in.",
)
def test_loss_is_global_and_before_the_update(lab):
    seen, _, expected = lab.once(two_steps)
    assert all(close(got["loss"], loss) for got, (loss, _) in zip(seen.value[1], expected, strict=True))


@graded(
    points=1,
    task="train_step",
    title="The accuracy counts valid rows of all devices",
    hint="The accuracy should be the number of valid rows that are right over the number of valid rows, both over all devices.",
)
def test_accuracy_counts_valid_rows(lab):
    seen, _, ((_, accuracy),) = lab.once(uneven_step)
    assert close(seen.value[1][0]["accuracy"], accuracy)


@graded(
    points=2,
    task="train_step",
    title="Parameters stay whole on each device",
    hint="The new parameters should lie as those that came in did: whole on all eight devices. Cut, they are gathered in the next "
    "step; on one device, the next step has no place to run.",
)
def test_parameters_stay_whole(lab):
    seen, _, _ = lab.once(two_steps)
    for lies in seen.value[2].values():
        assert lies["devices"] == DEVICES
        assert lies["whole"]


@graded(
    points=2,
    task="train_step",
    title="Nothing but sums travels",
    hint="The program should hold no collective but all-reduce. An all-gather brings rows or parameters whole to every device, "
    "at every step: then each of them does the work of all.",
)
def test_nothing_but_sums_travels(lab):
    seen, _, _ = lab.once(two_steps)
    assert set(seen.value[3]) == {"all-reduce"}


@graded(
    points=2,
    task="train_step",
    title="One all-reduce carries all sums",
    hint="All that is added up should travel in one all-reduce: the sums of losses, of right rows, of valid rows and of gradients, in "
    "one dtype. A second one comes from a count that is needed before the backward pass, or from integers.",
    needs=("test_nothing_but_sums_travels",),
)
def test_one_all_reduce_carries_all_sums(lab):
    seen, _, _ = lab.once(two_steps)
    assert seen.value[3] == {"all-reduce": 1}


@graded(
    points=1,
    task="train_step",
    title="Two steps are one compile",
    hint="The second step should find the program of the first. It compiles again where the new parameters differ from the old in "
    "layout, dtype or shape.",
)
def test_two_steps_are_one_compile(lab):
    seen, _, _ = lab.once(two_steps)
    assert seen.other_compiles.get("counted_step", 0) == 1


# dropped --------------------------------------------------------------------------------------------------------------


def a_key(lab):
    return Key("threefry2x32", lab.rng.integers(0, 2**32, 2, dtype=np.uint32))


def some_x(lab):
    return lab.rng.uniform(0.5, 1.0, (BATCH, 64)).astype("float32")


def dropped_on_eight(lab):
    """Key, x, and what comes out on eight devices."""
    key, x = a_key(lab), some_x(lab)
    return key, x, lab.call("dropped_on", key, Host(x), DEVICES)


@graded(
    points=1,
    task="dropped",
    title="Three quarters are kept, and scaled",
    hint="Each entry should be x / 0.75 with probability 0.75, and 0 otherwise, by a draw of its own: no two columns drop the same rows.",
)
def test_three_quarters_are_kept_and_scaled(lab):
    _, x, (got, *_) = lab.once(dropped_on_eight)
    kept = np.asarray(got) != 0
    assert close(got, np.where(kept, np.float64(x) / 0.75, 0))
    assert abs(kept.mean() - 0.75) < 0.04  # over five standard deviations
    assert len({column.tobytes() for column in kept.T}) == 64


@graded(
    points=3,
    task="dropped",
    title="Each replica has its own mask, and each row",
    hint="No two rows of the batch should have the same mask, on one device or on two. All devices run one body with one key: fold "
    "in what tells them apart.",
)
def test_each_replica_has_its_own_mask(lab):
    *_, (got, *_) = lab.once(dropped_on_eight)
    assert len({row.tobytes() for row in np.asarray(got) != 0}) == BATCH


@graded(
    points=3,
    task="dropped",
    title="The noise of a row does not depend on the number of devices",
    hint="On two devices the result should be that of eight, for a batch of any size. A key for each device, or a row number that is counted with the "
    "wrong batch (the global one where a block is meant, or BATCH whatever x has), makes another run of it: fold in the row's place in the global batch.",
)
def test_noise_does_not_depend_on_the_devices(lab):
    key, half = a_key(lab), some_x(lab)[: BATCH // 2]
    (eight, *_), (two, *_) = (lab.call("dropped_on", key, Host(half), devices) for devices in (DEVICES, 2))
    assert np.asarray(eight).any()
    assert close(two, eight)


@graded(
    points=1,
    task="dropped",
    title="The noise is that of the key",
    hint="The same key should give the same mask again, and another key another one. A key that is made inside, or closed over, "
    "repeats its mask at every step.",
)
def test_noise_is_that_of_the_key(lab):
    key, x, (got, *_) = lab.once(dropped_on_eight)
    again, *_ = lab.call("dropped_on", key, Host(x), DEVICES)
    other, *_ = lab.call("dropped_on", a_key(lab), Host(x), DEVICES)
    assert close(again, got)
    changed = (np.asarray(other) != 0) != (np.asarray(got) != 0)
    assert 0.25 < changed.mean() < 0.5  # 2 * 0.75 * 0.25 for independent masks


@graded(
    points=2,
    task="dropped",
    title="Nothing travels, and the result stays cut",
    hint="The program should hold no collective, and the result should lie in eighths as x does: each device can make the noise of its "
    "own rows. Nothing is gathered to be cut again.",
)
def test_nothing_travels_for_noise(lab):
    *_, (_, lies, found) = lab.once(dropped_on_eight)
    assert found == {}
    assert tuple(lies["block"]) == (BATCH // DEVICES, 64)
    assert lies["devices"] == DEVICES


# processes ------------------------------------------------------------------------------------------------------------


def row_keys(lab, key, n, process, processes):
    got = lab.call("row_keys", key, n, process, processes)
    assert isinstance(got, Key)
    return np.asarray(got.data)


@graded(
    points=1,
    task="processes",
    title="The processes load each row once, in order",
    hint="The slices of all processes, one after the other, should be the rows of the batch: each process loads n / processes rows, "
    "not n, and they stand side by side.",
)
def test_processes_load_each_row_once(lab):
    for n, processes in ((24, 4), (18, 3), (int(lab.rng.integers(3, 9)) * 5, 5)):
        parts = [lab.call("loaded", n, process, processes) for process in range(processes)]
        assert [len(part) for part in parts] == [n // processes] * processes
        assert [row for part in parts for row in part] == list(range(n))


@graded(
    points=1,
    task="processes",
    title="A batch that cannot be cut evenly is refused",
    hint="Where n is no multiple of the processes, my_rows should raise a ValueError: rows that no process loads are lost, and "
    "unequal parts make no global array.",
)
def test_uneven_parts_are_refused(lab):
    for n, processes in ((10, 4), (7, 2), (3, 4)):
        with pytest.raises(StudentError) as caught:
            lab.call("my_rows", n, processes - 1, processes)
        assert caught.value.is_a("ValueError")


def keys_of_four(lab):
    key = a_key(lab)
    return key, [row_keys(lab, key, 32, process, 4) for process in range(4)]


@graded(
    points=2,
    task="processes",
    title="No two rows of the global batch share a key",
    hint="The keys of all processes together should be different, and those of another key others. A number that each process counts from 0 repeats in "
    "the next one, and nothing on one machine shows it. A key made from a seed and a row, or their sum, is no key that comes from `key`: fold the row in.",
)
def test_no_two_rows_share_a_key(lab):
    key, parts = lab.once(keys_of_four)
    first, second = np.asarray(key.data)
    next_key = Key("threefry2x32", np.array([first, second ^ np.uint32(1)]))  # of the seed beside it
    together = np.concatenate([*parts, row_keys(lab, next_key, 32, 0, 4)])
    assert together.shape == (40, 2)
    assert len(np.unique(together, axis=0)) == 40


@graded(
    points=2,
    task="processes",
    title="A row's key does not depend on the number of processes",
    hint="A row should have the same key whether two or four processes load the batch, and in a batch of another size. The number of "
    "a process tells rows apart, and changes with the cluster: fold in the global number of the row alone.",
)
def test_keys_do_not_depend_on_the_processes(lab):
    key, parts = lab.once(keys_of_four)
    assert np.array_equal(row_keys(lab, key, 32, 1, 2), np.concatenate(parts[2:]))
    assert np.array_equal(row_keys(lab, key, 8, 0, 1), parts[0])
