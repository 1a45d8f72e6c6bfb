"""Hidden asserts of lab 08.

Two programs are exported, one for `normal_equations` and one for `spread`; a process without student code says what they give and
what XLA plans. Everything is compared with the same formulas in float64, and the cells that keys drop with threefry in NumPy.

Temporaries for 4003 rows: 0.14 to 0.45 MB in blocks of 128, 2.0 MB at once and in an unrolled loop; budget 0.6 MB. For 101 keys:
0.04 MB for a scan, 0.5 MB for `lax.map` in chunks of 8, 6.6 MB for the wide vmap; budget 1.2 MB.

Errors: a right float32 answer is within 6e-7 of the largest entry of the normal equations, bfloat16 features are off by 1e-4 with
float32 sums. Scores lie in the hundreds with a standard deviation near 1, so that the mean of squares loses the variance to
rounding: it is off by 1e-2 and more in some row, where Welford is off by 1e-4.
"""

import numpy as np
import pytest

from traceonce.grade.hidden import Host, Key, Node, StudentError, graded

ROWS, KEYS, IMAGES = (
    (3907, 3989, 4001),
    (83, 89, 97),
    64,
)  # one of them each: primes, and none of the visible asserts' numbers
ROWS_BUDGET, KEYS_BUDGET = 600_000, 1_200_000
FRAMES, FRAME = 64, (96, 128)


def network(lab):
    """The given network, with other numbers."""
    return {
        "projection": lab.rng.normal(0, 0.7, (16, 128)).astype("float32"),
        "shift": lab.rng.uniform(-1, 1, 128).astype("float32"),
        "w": lab.rng.normal(0, 0.3, 128).astype("float32"),
        "b": np.float32(lab.rng.choice([-1, 1]) * lab.rng.uniform(250, 400)),
    }


def features(given, x):
    return np.tanh(np.float64(x) @ np.float64(given["projection"]) + np.float64(given["shift"]))


# normal_equations -----------------------------------------------------------------------------------------------------


def rows_and_program(lab):
    """(f.T f, f.T y, strength) in float64, and the program for the same data."""
    given = network(lab)
    rows = int(lab.rng.choice(ROWS))
    x = lab.rng.uniform(0, 1, (rows, 16)).astype("float32")
    y = lab.rng.normal(0, 1, rows).astype("float32")
    strength = float(lab.rng.uniform(20, 80))
    f = features(given, x)
    return f.T @ f, f.T @ np.float64(y), strength, lab.export("normal_equations", given, x, y, strength)


def results(program, *shapes):
    """The two arrays of a pair, with these shapes; a named tuple is a pair as well."""
    value = list(program.value.fields.values()) if isinstance(program.value, Node) else program.value
    assert isinstance(value, tuple | list)
    assert [np.shape(part) for part in value] == list(shapes)
    return [np.asarray(part, "float64") for part in value]


def gram_and_moment(program):
    return results(program, (128, 128), (128,))


def off_diagonal(gram):
    return gram - np.diag(np.diag(gram))


def furthest(got, expected):
    """The largest difference, as a share of the largest expected entry."""
    return np.max(np.abs(got - expected)) / np.max(np.abs(expected))


@graded(
    points=2,
    task="normal_equations",
    title="Every row counts once in both sums",
    hint="f.T @ f and f.T @ y should be the sum over all rows, each with its own target. Look at the short last block: it should not be left "
    "out, and rows of zeros that fill it have features of their own. Blocks add up, and a mean of blocks is another number. NumPy on a tracer "
    "cannot be exported.",
)
def test_every_row_counts_once(lab):
    gram, moment, _, program = lab.once(rows_and_program)
    got_gram, got_moment = gram_and_moment(program)
    assert furthest(off_diagonal(got_gram), off_diagonal(gram)) <= 2e-3
    assert furthest(got_moment, moment) <= 5e-3


@graded(
    points=1,
    task="normal_equations",
    title="The strength is added once",
    hint="The diagonal should have strength added to the sum over all rows: once, and not once for each block or each row.",
)
def test_strength_is_added_once(lab):
    gram, _, strength, program = lab.once(rows_and_program)
    assert furthest(np.diag(gram_and_moment(program)[0]), np.diag(gram) + strength) <= 2e-3


@graded(
    points=2,
    task="normal_equations",
    title="The sums are float32, as in one shot",
    hint="Only the order of the additions should differ from one shot: a difference in the seventh digit. Features or sums in bfloat16 or "
    "float16 have fewer digits than that, also where the sum is float32 again.",
    needs=("test_every_row_counts_once",),
)
def test_sums_keep_their_precision(lab):
    gram, moment, _, program = lab.once(rows_and_program)
    got_gram, got_moment = gram_and_moment(program)
    assert furthest(off_diagonal(got_gram), off_diagonal(gram)) <= 5e-6
    assert furthest(got_moment, moment) <= 2e-5


@graded(
    points=3,
    task="normal_equations",
    title="The plan holds a block of features, not all of them",
    hint="For 4003 rows the compiler should plan at most 600 kB of temporaries. Features in pieces that are stacked are all features again, "
    "and so is a Python loop, which is unrolled. Carry the sums through lax.scan or lax.fori_loop.",
)
def test_rows_stay_in_the_budget(lab):
    assert lab.once(rows_and_program)[3].temporaries <= ROWS_BUDGET


# spread ---------------------------------------------------------------------------------------------------------------


def turned(word, by):
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))


def threefry(key, first, second):
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011): two words of output for two words of input."""
    schedule = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    first, second = first + schedule[0], second + schedule[1]
    for turn in range(5):
        for by in ((13, 15, 26, 6), (17, 29, 16, 24))[turn % 2]:
            first = first + second
            second = turned(second, by) ^ first
        first = first + schedule[(turn + 1) % 3]
        second = second + schedule[(turn + 2) % 3] + np.uint32(turn + 1)
    return first, second


def kept_cells(data):
    """What `jax.random.bernoulli(key, 0.8, (16,))` gives for the data of each key: (keys, 16), bool."""
    columns = [data[:, :1], data[:, 1:]]
    first, second = threefry(columns, np.zeros((1, 16), "uint32"), np.arange(16, dtype="uint32")[None])
    mantissa = ((first ^ second) >> np.uint32(9)) | np.uint32(0x3F800000)
    return mantissa.view("float32") - np.float32(1) < np.float32(0.8)


def keys_and_program(lab, count=None):
    """The scores (keys, images) without the offset, in float64, the offset, and the program for the same data."""
    given = network(lab)
    x = lab.rng.uniform(0, 1, (IMAGES, 16)).astype("float32")
    data = lab.rng.integers(1, 2**32, (count or int(lab.rng.choice(KEYS)), 2), dtype="uint32")
    dropped = np.float64(x) * kept_cells(data)[:, None, :] / 0.8
    scores = features(given, dropped) @ np.float64(given["w"])
    # By their scores, so that chunks of keys are surely unlike each other, and what is put together of them is off.
    order = np.argsort(scores.mean(axis=1))
    scores, data = scores[order], data[order]
    return scores, float(given["b"]), lab.export("spread", given, x, Key("threefry2x32", data))


def mean_and_variance(program):
    return results(program, (IMAGES,), (IMAGES,))


@graded(
    points=2,
    task="spread",
    title="The mean is over every key, and over these keys",
    hint="Each of the keys should count once: no fewer samples, no rest of the last chunk left out or weighted as a whole chunk, and no key "
    "split or folded into new ones. The scores should be float32 while they are added.",
)
def test_mean_is_over_every_key(lab):
    scores, offset, program = lab.once(keys_and_program)
    assert np.allclose(mean_and_variance(program)[0], scores.mean(axis=0) + offset, rtol=0, atol=3e-3)


@graded(
    points=1,
    task="spread",
    title="The variance divides by the number of keys minus 1",
    hint="The variance should be the sum of squared distances from the mean of all keys, divided by their number minus 1: not by their "
    "number, not its root, and not the mean of the variances of chunks.",
)
def test_variance_divides_by_one_less(lab):
    scores, _, program = lab.once(keys_and_program)
    ratio = np.median(mean_and_variance(program)[1] / scores.var(axis=0, ddof=1))
    assert abs(ratio - 1) <= 4e-3


@graded(
    points=2,
    task="spread",
    title="The variance is as good for scores in the hundreds",
    hint="An offset of all scores should change no variance. The mean of squares minus the square of the mean subtracts two large numbers: "
    "of seven digits few are left. Sum the squared distances from a mean instead.",
)
def test_variance_survives_an_offset(lab):
    scores, _, program = lab.once(keys_and_program)
    ratio = mean_and_variance(program)[1] / scores.var(axis=0, ddof=1)
    assert np.all(np.abs(ratio / np.median(ratio) - 1) <= 3e-3)


@graded(
    points=1,
    task="spread",
    title="Eight keys will do, and a number that chunks divide",
    hint="Any number of keys should do. Where the chunk divides their number no rest is left, and the mean of no keys is NaN: leave an empty rest "
    "out. Sizes that are written down for about a hundred keys fit no eight.",
    needs=("test_mean_is_over_every_key", "test_variance_divides_by_one_less"),
)
def test_any_number_of_keys(lab):
    scores, offset, program = keys_and_program(lab, 8)
    mean, variance = mean_and_variance(program)
    assert np.allclose(mean, scores.mean(axis=0) + offset, rtol=0, atol=3e-3)
    assert abs(np.median(variance / scores.var(axis=0, ddof=1)) - 1) <= 1e-2


@graded(
    points=3,
    task="spread",
    title="The plan holds a few samples, not all of them",
    hint="For 64 rows and 101 keys the compiler should plan at most 1.2 MB of temporaries. A wide vmap holds the features of all samples. A "
    "chunk of all keys is a wide vmap, and so is a Python loop, which is unrolled. del and gc.collect() free Python's names, and have no part "
    "in the plan.",
)
def test_keys_stay_in_the_budget(lab):
    assert lab.once(keys_and_program)[2].temporaries <= KEYS_BUDGET


# pack and unpack ------------------------------------------------------------------------------------------------------


def packed(lab, scores, threshold):
    """Bytes kept, and the mask that comes back."""
    size, mask = lab.call("try_pack", Host(scores), threshold)
    return size, np.asarray(mask)


def noise(lab, shape=(37, 53)):
    """Scores between 0 and 1, of which some are exactly at the threshold, and the threshold."""
    scores = lab.rng.uniform(0, 1, shape).astype("float32")
    threshold = float(np.float32(lab.rng.uniform(0.3, 0.7)))
    scores.flat[lab.rng.choice(scores.size, 40, replace=False)] = threshold
    return scores, threshold


def shapes_in_frame(lab, shape=(331, 509)):
    """Scores above 0.5 inside of three discs. The float32 scores have noise in their last digits."""
    up, across = np.mgrid[: shape[0], : shape[1]]
    scores = np.zeros(shape)
    for _ in range(3):
        centre, radius = lab.rng.uniform(0.2, 0.8, 2) * shape, lab.rng.uniform(30, 80)
        scores = np.maximum(scores, 1 / (1 + (np.hypot(up - centre[0], across - centre[1]) / radius) ** 4))
    return (scores + lab.rng.normal(0, 1e-6, shape)).astype("float32")


@graded(
    points=2,
    task="pack",
    title="The mask comes back, whatever its height and width",
    hint="Heights and widths are no multiples of 8. np.packbits fills up to a whole byte, at the end of the array or of every row with "
    "axis=1, and what was filled up should be cut off at the same place. Look at the last columns, at the order of bits, and for bool.",
)
def test_mask_comes_back(lab):
    for shape in ((37, 53), (3, 130)):
        scores = lab.rng.uniform(0, 1, shape).astype("float32")
        mask = packed(lab, scores, 0.5)[1]
        assert mask.dtype == bool
        assert np.array_equal(mask, scores > 0.5)


@graded(
    points=1,
    task="pack",
    title="Strictly above the threshold, in the precision of the scores",
    hint="A pixel exactly at the threshold should be False, and one just above it True. Scores that are rounded to uint8 or float16 before "
    "the comparison fall on the wrong side.",
)
def test_threshold_is_strict(lab):
    scores, threshold = noise(lab)
    scores.flat[:20] = np.nextafter(np.float32(threshold), np.float32(1))
    assert np.array_equal(packed(lab, scores, threshold)[1], scores > threshold)


@graded(
    points=2,
    task="pack",
    title="The bytes stay in the budget, for noise and for shapes",
    hint="Noise should take one bit a pixel and at most 100 bytes more: pack the bits, then compress. A few large shapes should take 1/200 "
    "of the float32 scores: bits alone take 1/32, and compressed scores keep the noise in their last digits.",
)
def test_bytes_stay_in_the_budget(lab):
    scores, threshold = noise(lab, (96, 128))
    assert packed(lab, scores, threshold)[0] <= scores.size / 8 + 100
    scores = shapes_in_frame(lab)
    assert packed(lab, scores, 0.5)[0] <= scores.nbytes / 200


# pack_all -------------------------------------------------------------------------------------------------------------


def stream(lab):
    """Frames' worth of bytes held, the masks that came back, and those that should have."""
    seed, threshold = int(lab.rng.integers(2**31)), float(np.float32(lab.rng.uniform(0.95, 0.99)))
    held, masks = lab.call("try_stream", seed, FRAMES, threshold)
    drawn = np.random.default_rng(seed)
    return held, masks, [drawn.random(FRAME, "float32") > threshold for _ in range(FRAMES)]


@graded(
    points=1,
    task="pack_all",
    title="Every frame's mask, in its place",
    hint="The list should have a packed mask for each frame, in the order of the stream: the first and the last as well, and each its own.",
)
def test_stream_is_packed_in_order(lab):
    _, masks, expected = lab.once(stream)
    assert len(masks) == len(expected)
    assert all(np.array_equal(got, mask) for got, mask in zip(masks, expected, strict=True))


@graded(
    points=3,
    task="pack_all",
    title="A few frames are held, not the stream",
    hint="When a frame is asked for, the earlier ones should be gone but for their packed masks: at most 8 frames' worth of bytes. A list of "
    "the stream, of device arrays or of unpacked masks holds them all, and gc.collect() frees nothing that a list holds.",
)
def test_stream_is_not_held(lab):
    assert lab.once(stream)[0] <= 8


# mask_cache -----------------------------------------------------------------------------------------------------------


NAMES = [f"{letter}{number}" for number in range(3) for letter in "abcd"]


def least_recently_used(sizes, asks, budget):
    """Which asks decode, by the rules of the lab."""
    kept, decodes = [], []
    for ask in asks:
        name = ask.lstrip("!")
        was_kept = name in kept
        kept = [other for other in kept if other != name]
        if ask != name:
            continue
        decodes.append(not was_kept)
        if sizes[name] <= budget:
            while sum(sizes[other] for other in kept) + sizes[name] > budget:
                kept.pop(0)
            kept.append(name)
    return decodes


def asked(lab, sizes, asks, budget):
    """(decoded?, right?, bytes alive) for each ask."""
    seen = lab.call("try_cache", sizes, list(asks), budget)
    return [list(column) for column in zip(*seen, strict=True)]


def random_asks(lab):
    """Twelve masks of 200 to 400 bytes, a budget for about four, and 150 asks."""
    sizes = {name: int(lab.rng.integers(200, 400)) for name in NAMES}
    favourites = list(lab.rng.permutation(NAMES))
    weights = np.linspace(3, 1, len(NAMES))
    asks = [str(name) for name in lab.rng.choice(favourites, 150, p=weights / weights.sum())]
    return sizes, asks, 1250


def long_series(lab):
    sizes, asks, budget = random_asks(lab)
    return budget, least_recently_used(sizes, asks, budget), asked(lab, sizes, asks, budget)


@graded(
    points=1,
    task="mask_cache",
    title="The mask that was asked for",
    hint="get(name) should give the mask of that name, whether it was kept, decoded now, or dropped and decoded again: masks may have the "
    "same size, and every name its own.",
)
def test_right_mask_is_given(lab):
    sizes = dict.fromkeys(NAMES, 256)
    asks = [*NAMES[:3], *(str(name) for name in lab.rng.choice(NAMES, 40))]
    assert all(asked(lab, sizes, asks, 1000)[1])
    # A second cache knows nothing of the first, which has surely kept the last mask: here it has another size.
    assert all(asked(lab, {asks[-1]: 200}, asks[-1:], 1000)[1])
    assert all(lab.once(long_series)[2][1])


@graded(
    points=1,
    task="mask_cache",
    title="A mask that is kept is not decoded again",
    hint="While all masks have room, each should be decoded once, also where they fill the budget to the byte. Clearing everything when it "
    "is nearly full, or sizes that are counted twice, drop masks that had room.",
)
def test_kept_mask_is_not_decoded_again(lab):
    sizes = {name: int(lab.rng.integers(240, 360)) for name in NAMES[:5]}  # without the last, over 0.72 of them all
    asks = [*sizes, *(str(name) for name in lab.rng.choice(list(sizes), 20))]
    decoded, _, _ = asked(lab, sizes, asks, sum(sizes.values()))
    assert decoded == [True] * 5 + [False] * 20


@graded(
    points=3,
    task="mask_cache",
    title="The bytes of the kept masks stay within the budget",
    hint="After every get the nbytes of the masks that are still alive should add up to at most the budget; len(mask) is its rows. A dict without a bound, a bound on the number "
    "of masks, and one mask too many all pass it. What is dropped should be held nowhere else; gc.collect() drops nothing.",
)
def test_kept_bytes_stay_within_the_budget(lab):
    budget, _, (_, _, alive) = lab.once(long_series)
    assert max(alive) <= budget


@graded(
    points=2,
    task="mask_cache",
    title="The one that was not asked for longest goes first, and no more than needed",
    hint="A get of a kept mask makes it the youngest, so it should move to the end of the order. The first that was decoded, the last, the "
    "largest, or all of them are other masks to drop.",
    needs=("test_right_mask_is_given",),
)
def test_longest_unasked_goes_first(lab):
    _, expected, (decoded, _, _) = lab.once(long_series)
    assert decoded == expected
    # Another order can decode alike in a series of chance, and here it cannot.
    first, second, third, fourth = lab.rng.permutation(NAMES)[:4].tolist()
    asks = [first, second, third, first, fourth, first]
    assert asked(lab, dict.fromkeys(asks, 300), asks, 900)[0] == [True, True, True, False, True, False]


@graded(
    points=1,
    task="mask_cache",
    title="A mask larger than the budget drops nothing, and one as large as it is kept",
    hint="A mask that can never fit should be handed out and not kept, and the others should stay: they need not make room for what has none. A mask of exactly the budget "
    "fits, and is kept alone.",
)
def test_too_large_mask_drops_nothing(lab):
    sizes = {name: int(lab.rng.integers(200, 300)) for name in NAMES[:3]} | {"huge": 2000, "whole": 1000}
    asks = [*NAMES[:3], "huge", *NAMES[:3], "huge", "whole", "whole"]
    decoded, right, alive = asked(lab, sizes, asks, 1000)
    assert all(right)
    assert decoded == [True] * 4 + [False] * 3 + [True, True, False]
    assert max(alive) <= 1000


@graded(
    points=2,
    task="mask_cache",
    title="A forgotten mask is decoded anew, and its room is free",
    hint="After forget(name) the next get should decode, the room of the old mask should be free for others, and a name that is not kept "
    "should be no error. The others stay. What a second dict still holds is stale.",
)
def test_forgotten_mask_is_decoded_anew(lab):
    sizes = dict.fromkeys(NAMES, 300)
    a, b, c, d = (str(name) for name in lab.rng.choice(NAMES, 4, replace=False))
    asks = [f"!{a}", a, b, c, f"!{b}", f"!{b}", d, a, c, b, f"!{b}", b, f"!{d}", a]
    decoded, right, _ = asked(lab, sizes, asks, 900)
    assert all(right)
    assert decoded == least_recently_used(sizes, asks, 900)


# largest_chunk --------------------------------------------------------------------------------------------------------


def job(lab, chunks=None):
    """MB that each chunk needs: a start, and steps of very different size."""
    chunks = int(lab.rng.integers(200, 300)) if chunks is None else chunks
    steps = lab.rng.uniform(1, 4, chunks) + lab.rng.choice([0.0, 60.0], chunks, p=[0.93, 0.07])
    return [float(mb) for mb in 250 + np.cumsum(steps)]


def chosen(lab, needs, budget, cap, seen=0.6):
    chunk, starts = lab.call("try_chunk", needs, budget, cap, seen)
    return int(chunk), int(starts)


@graded(
    points=2,
    task="largest_chunk",
    title="The largest chunk whose own process stays in the budget",
    hint="The result should fit, and one more should not: up to n itself. A peak never falls, so a process that ran a larger chunk says "
    "nothing of a smaller one: start one for each. And needs jump: what a chunk of 1 needs tells nothing of 100.",
)
def test_largest_chunk_that_fits(lab):
    for share in (0.3, 0.6, 0.9):
        needs = job(lab)
        at = int(share * len(needs)) + int(lab.rng.integers(-9, 10))
        budget = (needs[at - 1] + needs[at]) / 2
        assert chosen(lab, needs, budget, 1e6)[0] == at
    needs = job(lab)
    assert chosen(lab, needs, needs[-1], 1e6)[0] == len(needs)
    assert chosen(lab, needs, needs[0], 1e6)[0] == 1


@graded(
    points=2,
    task="largest_chunk",
    title="A chunk that was killed does not fit",
    hint="A process that was killed may have been seen with little memory. Its return code should be asked before its peak is believed.",
)
def test_killed_chunk_does_not_fit(lab):
    needs = job(lab)
    at = len(needs) // 2 + int(lab.rng.integers(-9, 10))
    cap = (needs[at - 1] + needs[at]) / 2
    assert chosen(lab, needs, needs[-1] * 2, cap)[0] == at


@graded(
    points=1,
    task="largest_chunk",
    title="Few processes are started",
    hint="For up to 300 chunks, 20 processes should do: halve the range that is left each time. One for each chunk is a night of starts.",
)
def test_few_processes_are_started(lab):
    needs = job(lab)
    for at in (3, len(needs) // 2, len(needs) - 2):
        assert chosen(lab, needs, needs[at - 1], 1e6)[1] <= 20


@graded(
    points=1,
    task="largest_chunk",
    title="Nothing fits: ValueError",
    hint="Where not even a chunk of 1 fits, the answer should be a ValueError: 0 is no chunk, and 1 dies.",
)
def test_nothing_fits(lab):
    needs = job(lab)
    assert chosen(lab, needs, needs[0], 1e6)[0] == 1
    with pytest.raises(StudentError) as caught:
        chosen(lab, needs, needs[0] - 1, 1e6)
    assert caught.value.is_a("ValueError")
