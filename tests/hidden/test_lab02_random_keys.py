"""Hidden asserts of lab 02.

What a student's functions consume is seen in what they return: keys come over the wire as an implementation's name and
data, and are compared as data, never by what is drawn from them. A step may carry a new key by `split` or keep one and use
`fold_in`; nothing here knows which.

Keys and step numbers are random. Parameters and data have magnitude 0.5 to 2. Two shapes in all: batches of 4 rows, and one
of 2, since every other shape is a dozen compiles for each submission.
"""

import numpy as np

from traceonce.grade.hidden import Key, Opaque, Tracer, graded, same_tree

TOLERANCE = 2e-5
IMPL = "threefry2x32"
USES = ("noise", "mask")


def words(value):
    """The data of one key or of many, as a list of tuples; raw key data counts as keys, and so does a list of keys."""
    if isinstance(value, list | tuple):
        return [each for part in value for each in words(part)]
    data = value.data if isinstance(value, Key) else value
    assert isinstance(data, np.ndarray)
    assert data.dtype == np.uint32
    assert data.ndim
    return [tuple(row) for row in data.reshape(-1, data.shape[-1]).tolist()]


def word(value):
    """The data of exactly one key."""
    (only,) = words(value)
    return only


def pair(value):
    """The two parts of what a function returned."""
    assert isinstance(value, tuple | list)
    assert len(value) == 2
    return value


def random_keys(lab, *shape):
    return Key(IMPL, lab.rng.integers(1, 2**32, (*shape, 2), dtype=np.uint32))


def draw(rng, *shape):
    """Numbers of magnitude 0.5 to 2 and random sign."""
    return np.asarray(rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 2.0, shape), "float32")


def random_state(lab):
    params = {"w": draw(lab.rng, 2), "b": draw(lab.rng)}
    return {"params": params, "key": random_keys(lab), "step": np.int32(lab.rng.integers(3, 40))}


def first_state(lab):
    """A state at step 0, where a fold of the step is the first child of a split: who mixes both meets himself."""
    return {**random_state(lab), "step": np.int32(0)}


def random_batch(lab):
    """Row numbers in no order, next to each other so that sums collide; x, y."""
    rows = np.asarray(lab.rng.integers(0, 1000) + lab.rng.permutation(4), "int32")
    return rows, draw(lab.rng, 4, 2), draw(lab.rng, 4)


def first_batch(lab):
    """Rows 0 to 3 in some order, of shard 0 or 1, where folds and children of a split coincide; x, y, the shard."""
    return np.asarray(lab.rng.permutation(4), "int32"), draw(lab.rng, 4, 2), draw(lab.rng, 4), int(lab.rng.integers(2))


def close(got, expected):
    return np.shape(got) == np.shape(expected) and np.allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE)


# all_distinct ---------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="all_distinct",
    title="Different keys pass, whatever is drawn from them",
    hint="The answer should be True for keys that differ in any of their words, of any implementation: rbg keys have four. Small draws "
    "of different keys agree by chance, and one word or a sum is not the key: compare whole rows of key_data.",
)
def test_different_keys_pass(lab):
    a, b, c, d = (int(number) for number in lab.rng.choice(2**31, 4, replace=False) + 1)
    for data in ([[a, b], [a, c], [d, b], [b, a]], lab.rng.integers(1, 2**32, (4, 2))):
        assert bool(lab.call("all_distinct", Key(IMPL, np.asarray(data, "uint32")))) is True
    for _ in range(4):
        assert bool(lab.call("all_distinct", random_keys(lab, 4))) is True
    data = np.tile(lab.rng.integers(1, 2**32, 4, dtype=np.uint32), (4, 1))
    data[:, lab.rng.integers(2, 4)] += np.arange(4, dtype=np.uint32)
    assert bool(lab.call("all_distinct", Key("rbg", data))) is True


@graded(
    points=1,
    task="all_distinct",
    title="A key that comes again is found, wherever it stands",
    hint="The answer should be False for any repeat, also when the two are not neighbours.",
)
def test_any_repeat_is_found(lab):
    for first, second in ((0, 1), (0, 3), (1, 3)):
        keys = random_keys(lab, 4)
        keys.data[second] = keys.data[first]
        assert bool(lab.call("all_distinct", keys)) is False


# take_key -------------------------------------------------------------------------------------------------------------


def taken(lab, state, steps):
    """The states of a run of `take_key`, the first included, and the keys that it handed out."""
    states, keys = [state], []
    for _ in range(steps):
        state, key = pair(lab.call("take_key", state))
        states.append(state)
        keys.append(word(key))
    return states, keys


@graded(
    points=2,
    task="take_key",
    title="No two steps get the same key",
    hint="Over a run every step should get a key of its own. If a step's key comes again, the next state does not differ in "
    "what the key is made from: return the new key, or fold in the step.",
)
def test_no_two_steps_get_the_same_key(lab):
    _, keys = taken(lab, random_state(lab), 16)
    assert len(set(keys)) == 16


@graded(
    points=2,
    task="take_key",
    title="A key that is handed out is in no state",
    hint="A step's key should never be a state's key as well: it would have two consumers, the step and the next split or "
    "fold. Hand out a child and keep its sibling or its parent.",
)
def test_key_that_is_handed_out_is_in_no_state(lab):
    states, keys = taken(lab, first_state(lab), 6)
    assert not {word(state["key"]) for state in states} & set(keys)


@graded(
    points=1,
    task="take_key",
    title="The same state gives the same key",
    hint="The key should follow from the state alone. A clock, a counter outside or a generator of NumPy makes a run that "
    "nobody can repeat.",
)
def test_same_state_gives_the_same_key(lab):
    state = random_state(lab)
    (first, one), (second, other) = (pair(lab.call("take_key", state)) for _ in range(2))
    assert word(one) == word(other)
    assert word(first["key"]) == word(second["key"])


@graded(
    points=1,
    task="take_key",
    title="The run's key decides, and no other",
    hint="Runs with different keys should get different keys. A key from a global, a constant seed or the step number alone "
    "is the same for every run; with seed + step, step 1 of one run is step 0 of the next.",
)
def test_run_key_decides(lab):
    state = random_state(lab)
    keys, steps = [random_keys(lab) for _ in range(3)], [state["step"]] * 3
    for place in (0, 1):  # runs whose words are neighbours, one step apart
        data = keys[0].data.copy()
        data[place] -= 1
        keys.append(Key(IMPL, data))
        steps.append(np.int32(state["step"] + 1))
    runs = [{**state, "key": key, "step": step} for key, step in zip(keys, steps, strict=True)]
    assert len({word(pair(lab.call("take_key", run))[1]) for run in runs}) == 5


@graded(
    points=1,
    task="take_key",
    title="The step is counted, and the rest of the state is kept",
    hint="The state that goes on should have step one higher and the same params, and the state that came in should be as "
    "it was. Build a new dict: {**state, ...}.",
)
def test_step_is_counted_and_the_rest_is_kept(lab):
    state = random_state(lab)
    seen = lab.observe("take_key", state)
    after, _ = pair(seen.value)
    assert int(after["step"]) == int(state["step"]) + 1
    assert same_tree(after["params"], state["params"])
    assert same_tree(seen.arguments[0], state)


# example_keys ---------------------------------------------------------------------------------------------------------


def made(lab, key, shard, rows):
    """For each use the keys of the rows, one for each."""
    keys = lab.call("example_keys", key, shard, np.asarray(rows, "int32"))
    found = {use: words(keys[use]) for use in USES}
    assert all(len(each) == len(rows) for each in found.values())
    return found


def flat(*found):
    return [key for each in found for use in USES for key in each[use]]


@graded(
    points=2,
    task="example_keys",
    title="Every row, use and step has keys of its own",
    hint="The keys for noise and mask of all rows should be different, different from the step's key, and others at another "
    "step. Two helpers that split one parent get the same child; one key for all rows is one noise for all.",
)
def test_every_row_use_and_step_has_its_own_keys(lab):
    one, other = random_keys(lab), random_keys(lab)
    rows, _, _ = random_batch(lab)
    keys = [word(one), word(other), *flat(made(lab, one, 2, rows), made(lab, other, 2, rows))]
    assert len(set(keys)) == 18


@graded(
    points=2,
    task="example_keys",
    title="An example keeps its keys in any order and any size of batch",
    hint="A row's keys should follow from its number. Keys by position in the batch are dealt anew by a shuffle, and the "
    "length of the batch is no part of an example's identity.",
)
def test_example_keeps_its_keys(lab):
    key, shard = random_keys(lab), int(lab.rng.integers(1, 9))
    rows, _, _ = random_batch(lab)
    whole = made(lab, key, shard, rows)
    for places in ([3, 0, 2, 1], [2, 1]):  # the one test with another shape
        found = made(lab, key, shard, rows[places])
        for use in USES:
            assert found[use] == [whole[use][place] for place in places]


@graded(
    points=2,
    task="example_keys",
    title="The shard is a part of the identity",
    hint="Row 5 of one shard should not get the keys of any row of another. A row number alone repeats in each process, and "
    "numbers like shard + row, shard * 1000 + row or row * 100 + shard meet again, and so do large ones in float32. Fold twice, or leave "
    "room for a million rows or for a thousand shards, in integers.",
)
def test_shard_is_part_of_the_identity(lab):
    key = random_keys(lab)
    near = [made(lab, key, shard, [0, 1, 2, 3]) for shard in (0, 1, 2, 100, 512, 999)]
    places = [4, 8, 16, 32], [64, 100, 128, 256], [512, 1000, 1024, 10_000], [4096, 65_536, 100_000, 999_999]
    keys = flat(*near, *(made(lab, key, 0, rows) for rows in places))
    assert len(set(keys)) == 80


# corrupt --------------------------------------------------------------------------------------------------------------


def corrupted(lab, keys, x):
    """What `corrupt` returned: noise and inputs as float64, the mask as booleans, all of the shape of x."""
    found = lab.call("corrupt", keys, x)
    mask = np.asarray(found["mask"])
    assert mask.shape == x.shape
    assert np.isin(mask, (0, 1)).all()
    noise, inputs = (np.asarray(found[name], "float64") for name in ("noise", "inputs"))
    assert noise.shape == inputs.shape == x.shape
    return noise, mask.astype(bool), inputs


def both_keys(lab):
    return {use: random_keys(lab, 4) for use in USES}


@graded(
    points=1,
    task="corrupt",
    title="The inputs are noisy, masked and scaled",
    hint="inputs should be (x + 0.1 * noise) / 0.75 where the mask keeps and 0 elsewhere: the noise comes first, and what is "
    "dropped is exactly 0.",
)
def test_inputs_are_noisy_masked_and_scaled(lab):
    for _ in range(3):
        x = draw(lab.rng, 4, 2)
        noise, mask, inputs = corrupted(lab, both_keys(lab), x)
        assert close(inputs, np.where(mask, (x + 0.1 * noise) / 0.75, 0))
        assert noise.all()


@graded(
    points=1,
    task="corrupt",
    title="Three quarters are kept, and each entry has its own standard normal noise",
    hint="Over many keys the mask should keep 0.75 of the entries (bernoulli's number is the chance of True), and the noise "
    "should have standard deviation 1; the factor 0.1 is for inputs. One number for a whole row is too few: draw (d,).",
)
def test_three_quarters_are_kept(lab):
    # 128 entries. Right answers leave these bounds once in a million draws: 0.75 within 5 and 1 within 4.8 deviations.
    parts = [corrupted(lab, both_keys(lab), np.ones((4, 2), "float32")) for _ in range(16)]
    noise, mask, _ = (np.stack(part) for part in zip(*parts, strict=True))
    assert 0.55 < mask.mean() < 0.95
    assert 0.7 < noise.std() < 1.45
    assert (noise[..., 0] != noise[..., 1]).all()
    assert (mask[..., 0] != mask[..., 1]).any()


@graded(
    points=2,
    task="corrupt",
    title="Noise and mask each follow their own keys",
    hint="With other noise keys the noise should change and the mask stay; with other mask keys the noise should stay. If "
    "both move, they are drawn from one key.",
)
def test_noise_and_mask_follow_their_own_keys(lab):
    x, keys = draw(lab.rng, 4, 2), both_keys(lab)
    noise, mask, _ = corrupted(lab, keys, x)
    other_noise, same_mask, _ = corrupted(lab, {**keys, "noise": random_keys(lab, 4)}, x)
    assert np.array_equal(mask, same_mask)
    assert (noise != other_noise).all()
    masks = []
    for _ in range(6):  # one pair of small masks may agree by chance; seven do not
        same_noise, other_mask, _ = corrupted(lab, {**keys, "mask": random_keys(lab, 4)}, x)
        assert np.array_equal(noise, same_noise)
        masks.append(other_mask)
    assert any(not np.array_equal(mask, other) for other in masks)


@graded(
    points=2,
    task="corrupt",
    title="Each row is drawn from its own keys",
    hint="With another key for one row, that row's noise should change and no other. A draw of the whole batch from one key, "
    "such as keys[0], is noise for places, not for examples.",
)
def test_each_row_is_drawn_from_its_own_keys(lab):
    x, keys = draw(lab.rng, 4, 2), both_keys(lab)
    noise, mask, inputs = corrupted(lab, keys, x)
    for place in (0, 2):
        data = keys["noise"].data.copy()
        data[place] = random_keys(lab).data
        other, _, _ = corrupted(lab, {**keys, "noise": Key(IMPL, data)}, x)
        assert [bool((a != b).all()) for a, b in zip(noise, other, strict=True)] == [at == place for at in range(4)]
    order = [3, 0, 2, 1]
    turned = corrupted(lab, {use: Key(IMPL, keys[use].data[order]) for use in USES}, x[order])
    for part, moved in zip((noise, mask, inputs), turned, strict=True):
        assert np.array_equal(part[order], moved)


# train_step -----------------------------------------------------------------------------------------------------------


def stepped(lab, state, shard, rows, x, y, lr):
    after, report = pair(lab.call("train_step", state, shard, rows, x, y, lr))
    return after, report, {use: words(report["keys"][use]) for use in USES}


@graded(
    points=2,
    task="train_step",
    title="No key comes twice in a run",
    hint="Over several steps all keys should be different: those in states, and those for noise and mask of each example, and those of "
    "other shards. Return the state that take_key gave, hand on the shard, do not add up step and row, and take no key from a global.",
)
def test_no_key_comes_twice_in_a_run(lab):
    rows, x, y, shard, state = *first_batch(lab), first_state(lab)
    other, _, elsewhere = stepped(lab, {**state, "key": random_keys(lab)}, shard, rows, x, y, 0.05)
    kept, used = {word(state["key"]), word(other["key"])}, flat(elsewhere)
    used += flat(stepped(lab, state, shard + 1, rows, x, y, 0.05)[2])
    for _ in range(3):
        state, _, keys = stepped(lab, state, shard, rows, x, y, 0.05)
        kept.add(word(state["key"]))
        used += flat(keys)
    assert len(set(used)) == 40
    assert not kept & set(used)


@graded(
    points=2,
    task="train_step",
    title="The examples' keys come from the step's key, not from a state's",
    hint="example_keys should get the key that take_key handed out. From the key of the old or the new state, that key has two "
    "consumers: this step's examples, and the next step.",
)
def test_examples_use_the_step_key(lab):
    rows, x, y, shard, state = *first_batch(lab), random_state(lab)
    after, _, keys = stepped(lab, state, shard, rows, x, y, 0.05)
    for kept in (state["key"], after["key"]):
        assert not set(flat(made(lab, kept, shard, rows))) & set(flat(keys))


@graded(
    points=2,
    task="train_step",
    title="The inputs are those of the keys that are reported",
    hint="report['inputs'] should be what corrupt gives for report['keys'] and x: no second draw, and no other keys than "
    "those of the report.",
)
def test_inputs_are_those_of_the_reported_keys(lab):
    rows, x, y = random_batch(lab)
    _, report, _ = stepped(lab, random_state(lab), 3, rows, x, y, 0.05)
    _, _, inputs = corrupted(lab, report["keys"], x)
    assert close(report["inputs"], inputs)


@graded(
    points=2,
    task="train_step",
    title="A shuffled batch takes the same step",
    hint="The parameters after the step should not depend on the order of the batch: each example brings its noise along. "
    "The rows that the step is given are the identities; positions are not.",
)
def test_shuffled_batch_takes_the_same_step(lab):
    rows, x, y = random_batch(lab)
    state, order = random_state(lab), [3, 0, 2, 1]
    straight, _, keys = stepped(lab, state, 2, rows, x, y, 0.05)
    shuffled, _, moved = stepped(lab, state, 2, rows[order], x[order], y[order], 0.05)
    assert close(straight["params"]["w"], shuffled["params"]["w"])
    assert all(moved[use] == [keys[use][place] for place in order] for use in USES)


@graded(
    points=2,
    task="train_step",
    title="Loss and update are those of the corrupted inputs",
    hint="The loss should be mse of the parameters that came in, on report['inputs'], and the new parameters p - lr * its "
    "gradient. The clean x, the new parameters or a sum give other numbers. And the state that came in should stay as it was, the "
    "dict of its parameters too.",
)
def test_loss_and_update_are_those_of_the_inputs(lab):
    rows, x, y = random_batch(lab)
    state, lr = random_state(lab), float(lab.rng.uniform(0.02, 0.08))
    seen = lab.observe("train_step", state, 2, rows, x, y, lr)
    after, report = pair(seen.value)
    assert same_tree(seen.arguments[0], state)
    inputs, params = np.float64(report["inputs"]), state["params"]
    assert not np.allclose(inputs, x)
    errors = inputs @ np.float64(params["w"]) + np.float64(params["b"]) - y
    assert close(report["loss"], np.mean(errors**2))
    assert close(after["params"]["w"], params["w"] - lr * 2 * errors @ inputs / 4)
    assert close(after["params"]["b"], params["b"] - lr * 2 * errors.mean())
    assert int(after["step"]) == int(state["step"]) + 1


@graded(
    points=1,
    task="train_step",
    title="The step can be traced",
    hint="jax.eval_shape(train_step, ...) should run, for any numbers of rows and features. int(step), int(row), float(loss) or a loop "
    "over the values of rows needs a number at trace time. fold_in takes arrays.",
)
def test_step_can_be_traced(lab):
    rows, x, y = random_batch(lab)
    after, report = pair(lab.call("shapes_of", random_state(lab), 2, rows, x, y, 0.05))
    assert after["step"] == "int32[]"
    assert report["inputs"] == "float32[4, 2]"
    state = random_state(lab) | {"params": {"w": draw(lab.rng, 5), "b": draw(lab.rng)}}
    after, report = pair(lab.call("shapes_of", state, 2, rows[:3], draw(lab.rng, 3, 5), y[:3], 0.05))
    assert after["params"]["w"] == "float32[5]"
    assert report["inputs"] == "float32[3, 5]"


# save_state, load_state -----------------------------------------------------------------------------------------------


def is_plain(value):
    if isinstance(value, dict):
        return all(isinstance(name, str) and is_plain(part) for name, part in value.items())
    if isinstance(value, list | tuple):
        return all(is_plain(part) for part in value)
    return not isinstance(value, Key | Opaque | Tracer) and isinstance(
        value, np.ndarray | np.generic | bool | int | float | str | None
    )


@graded(
    points=1,
    task="checkpoint",
    title="What is saved is plain: arrays, numbers and text",
    hint="save_state should return a dict of arrays, numbers and text, with neither typed keys nor a pickle: no file format knows them. "
    "key_data gives the numbers of a key. And the state should stay as it was: the run goes on with it.",
)
def test_saved_state_is_plain(lab):
    state = random_state(lab)
    seen = lab.observe("save_state", state)
    saved = seen.value
    assert same_tree(seen.arguments[0], state)
    assert isinstance(saved, dict)
    assert saved
    assert is_plain(saved)


@graded(
    points=2,
    task="checkpoint",
    title="A run goes on from a checkpoint as if it had not stopped",
    hint="After saving and loading, steps should use the same keys and give the same parameters and step numbers as without "
    "the stop. A seed is the start of a run, not its middle: save the key that is carried, the step and the parameters. And what was "
    "saved should stay as it is: a checkpoint loads twice.",
)
def test_run_goes_on_from_a_checkpoint(lab):
    rows, x, y = random_batch(lab)
    state, _, _ = stepped(lab, random_state(lab), 1, rows, x, y, 0.05)
    saved = lab.call("save_state", state)
    loaded = lab.observe("load_state", saved)
    assert same_tree(loaded.arguments[0], saved)
    restored = loaded.value
    state, _, keys = stepped(lab, state, 1, rows, x, y, 0.05)
    restored, _, again = stepped(lab, restored, 1, rows, x, y, 0.05)
    assert keys == again
    assert word(state["key"]) == word(restored["key"])
    assert int(state["step"]) == int(restored["step"])
    assert close(restored["params"]["w"], state["params"]["w"])


@graded(
    points=2,
    task="checkpoint",
    title="The key's implementation survives",
    hint="A key of another implementation should come back as such. Its name must be saved: the default is a guess, and the "
    "shape of the data does not tell rbg from unsafe_rbg.",
)
def test_implementation_survives(lab):
    for impl in ("rbg", "unsafe_rbg"):
        key = Key(impl, lab.rng.integers(1, 2**32, 4, dtype=np.uint32))
        state = {**random_state(lab), "key": key}
        assert lab.call("load_state", lab.call("save_state", state))["key"] == key
