"""Hidden asserts of lab 09.

What is expected is computed with NumPy in float64. Pages are random ink between 0.2 and 1, with a band of few thin strokes at the
bottom and a strip of nothing, or of a little dirt, at the right, so that no field is near the limit of an empty one; thresholds lie in
the middle of the widest gap between two shares, so that rounding decides nothing. Right float32 answers are within 2e-6 of the reference; `TOLERANCE` leaves room.

For 200 fields XLA plans 13 kB of temporaries for chunks of 16, 21 kB for 32, and 103 kB for all at once. Right programs have 130
to 350 operations; a loop over the 13 chunks has 1700 and more. A page starts one program, and one or two for conversions; by chunks
it would be four.
"""

import numpy as np
import pytest

from traceonce.grade.hidden import Host, Node, StudentError, graded

TOLERANCE = 2e-5
BUDGET = 30_000
OPERATIONS = 700
CAPACITY = 64
SIZES = {"embed": (16, 8), "query": (8, 8), "value": (8, 8), "out": (32, 10), "bias": (10,)}


def softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def silu(x):
    return x / (1 + np.exp(-x))


def best_of(weights, page, corner):
    """The best digit of a field and its share; -1 and 0 for an empty one."""
    row, column = corner
    crop = np.float64(page)[row : row + 8, column : column + 8]
    if crop.max() < 0.1:
        return -1, 0.0
    ink = (crop - crop.min()) / (crop - crop.min()).max()
    w = {name: np.float64(leaf) for name, leaf in weights.items()}
    tokens = ink.reshape(2, 4, 2, 4).swapaxes(1, 2).reshape(4, 16) @ w["embed"]
    tokens = tokens + silu(softmax(tokens @ w["query"] @ tokens.T) @ tokens @ w["value"])
    shares = softmax(tokens.reshape(-1) @ w["out"] + w["bias"])
    return int(shares.argmax()), float(shares.max())


class Form:
    """A model's weights, a page, n fields of which a few are empty, a threshold that some miss, and the answers."""

    def __init__(self, rng, count):
        self.gap = 0.0
        # A wide gap, so that rounding decides nothing, and a share that a threshold of 0.3 judges otherwise: some draws have none.
        while self.gap < 1e-3 or not np.any((self.shares >= 0.3) != (self.shares >= self.threshold)):
            self._draw(rng, count)

    def _draw(self, rng, count):
        self.weights = {name: rng.normal(0, 0.5, size).astype("float32") for name, size in SIZES.items()}
        self.page = rng.uniform(0.2, 1.0, (60, 80)).astype("float32")
        self.page[44:] *= 0.5 * (rng.random((16, 80)) < 0.08)  # thin strokes on nothing
        self.page[:, 60:] = 0
        self.page[30:, 60:] = rng.uniform(0.02, 0.08, (30, 20))  # dirt
        self.corners = np.stack([rng.integers(0, 52, count), rng.integers(0, 52, count)], axis=1).astype("int32")
        empty = rng.choice(count, max(1, count // 8), replace=False)
        self.corners[empty, 1] = rng.integers(62, 70, len(empty))
        self.corners[empty[0::2], 0] = rng.integers(0, 20, len(empty[0::2]))
        self.corners[empty[1::2], 0] = rng.integers(30, 52, len(empty[1::2]))
        thin = rng.choice(np.setdiff1d(np.arange(count), empty), 2, replace=False)
        self.corners[thin, 0] = rng.integers(44, 52, 2)
        self.page[tuple(self.corners[thin].T + 3)] = 0.3  # a stroke in each of them at least
        best = [best_of(self.weights, self.page, corner) for corner in self.corners]
        digits, self.shares = (np.array(part) for part in zip(*best, strict=True))
        filled = np.sort(self.shares[self.shares > 0])
        middle = filled[len(filled) // 4 : 3 * len(filled) // 4 + 1]
        at = int(np.argmax(np.diff(middle)))
        self.gap, self.threshold = float(np.diff(middle)[at]), float(middle[at : at + 2].mean())
        self.digits = np.where(self.shares >= self.threshold, digits, -1)

    @property
    def traced(self):
        """The arguments as arrays."""
        return self.weights, self.page, self.corners, np.array(self.threshold, "float32")

    @property
    def applied(self):
        """The arguments as the application gives them."""
        return self.weights, self.page, Host(self.corners), self.threshold


def pair(value):
    """The two parts of an answer; a named tuple is a pair as well."""
    return list(value.fields.values()) if isinstance(value, Node) else value


def same_digits(got, form):
    return np.array_equal(np.asarray(pair(got)[0]), form.digits)


def same_shares(got, form):
    shares = np.asarray(pair(got)[1])
    return shares.shape == form.shares.shape and bool(np.allclose(shares, form.shares, rtol=0, atol=TOLERANCE))


def compiled(seen):
    return seen.compiles + sum(seen.other_compiles.values())


# read_one -------------------------------------------------------------------------------------------------------------


def fields(lab):
    form = Form(lab.rng, 16)
    return form, pair(lab.export("try_fields", *form.traced).value)


@graded(
    points=2,
    task="read_one",
    title="One field is one traceable function",
    hint="From the page to the answer, everything should happen in JAX, so that it can be traced with corner and threshold as "
    "arrays. A Python `if` on a value, float(), .item() and np.asarray ask a tracer for a number; page[row:row + 8] asks it for a shape.",
)
def test_one_field_can_be_traced(lab):
    _, got = lab.once(fields)
    assert len(got) == 2
    assert np.shape(got[0]) == np.shape(got[1]) == (16,)


@graded(
    points=2,
    task="read_one",
    title="The share is that of the best digit",
    hint="Each field that is not empty should have the share of its best digit, also where the digit is refused: the largest of "
    "the ten shares, after prepare, embed, attend, score and softmax, none of them left out. A few light strokes are no empty field: it is the "
    "largest ink that tells, not the mean.",
    needs=("test_one_field_can_be_traced",),
)
def test_share_is_that_of_the_best_digit(lab):
    form, got = lab.once(fields)
    filled = form.shares > 0
    assert np.allclose(np.asarray(got[1])[filled], form.shares[filled], rtol=0, atol=TOLERANCE)


@graded(
    points=2,
    task="read_one",
    title="A digit below the threshold is refused",
    hint="The digit should be that of the largest share, and -1 where this share is below the threshold that was given. It belongs "
    "into the function: a reader that gives every digit leaves the decision to somebody else.",
    needs=("test_one_field_can_be_traced",),
)
def test_unsure_digits_are_refused(lab):
    form, got = lab.once(fields)
    filled = form.shares > 0
    assert np.array_equal(np.asarray(got[0])[filled], form.digits[filled])


@graded(
    points=1,
    task="read_one",
    title="An empty field has digit -1 and share 0",
    hint="An empty field should have -1 and 0. `prepare` divides 0 by 0 there: a NaN must not reach the answer, and a share of NaN is not 0. "
    "Ask the crop itself whether it is empty, not what came out of prepare: a little dirt, below 0.1, is empty as well.",
    needs=("test_one_field_can_be_traced",),
)
def test_empty_field_is_minus_one_and_zero(lab):
    form, got = lab.once(fields)
    empty = form.shares == 0
    assert np.all(np.asarray(got[0])[empty] == -1)
    assert np.all(np.asarray(got[1])[empty] == 0)


ANSWERS = (
    "test_one_field_can_be_traced",
    "test_share_is_that_of_the_best_digit",
    "test_unsure_digits_are_refused",
    "test_empty_field_is_minus_one_and_zero",
)

# read_all -------------------------------------------------------------------------------------------------------------


def block(lab):
    form = Form(lab.rng, 200)
    return form, lab.export("try_all", *form.traced)


@graded(
    points=2,
    task="read_all",
    title="All fields are read, the last short chunk too",
    hint="Digits and shares of all n fields should come, in their order. 200 is no multiple of the chunk: n // CHUNK chunks leave the last "
    "fields out, and padding must be cut off again. The budget is for full precision: bfloat16 changes the shares. A model that is built again "
    "from its weights alone has lost its activation.",
    needs=ANSWERS,
)
def test_all_fields_are_read(lab):
    form, program = lab.once(block)
    assert same_digits(program.value, form)
    assert same_shares(program.value, form)


@graded(
    points=2,
    task="read_all",
    title="The block ends with two numbers a field",
    hint="The program should return digits (n,) and shares (n,), and nothing else. Scores or tokens that come out have their "
    "postprocess outside: one more start, and ten times the bytes to fetch.",
)
def test_block_ends_with_two_numbers(lab):
    _, program = lab.once(block)
    assert program.shapes == ((200,), (200,))


@graded(
    points=2,
    task="read_all",
    title="The program does not grow with the fields",
    hint="The program for 200 fields should be about as large as the one for 32. A Python loop over fields or chunks is unrolled while "
    "tracing; lax.map and scan have their body once.",
)
def test_program_does_not_grow(lab):
    assert lab.once(block)[1].operations <= OPERATIONS


@graded(
    points=3,
    task="read_all",
    title="The plan stays in the budget",
    hint="For 200 fields at most BUDGET bytes of temporaries should be planned. vmap over all fields holds the tokens of all at once, and so "
    "does a chunk that is as wide as the page: lax.map with batch_size=CHUNK, or a scan over chunks.",
)
def test_plan_stays_in_the_budget(lab):
    assert lab.once(block)[1].temporaries <= BUDGET


@graded(
    points=3,
    task="read_all",
    title="A call starts one program",
    hint="A call should start one compiled program, whatever the number of fields. Without a jit around all of it, each operation is a "
    "start; with a jit on each helper, each helper is one; with a loop outside of the jit, each turn.",
)
def test_call_starts_one_program(lab):
    form = Form(lab.rng, CAPACITY)
    assert 1 <= int(lab.call("starts_of_all", *form.traced)) <= 2


def two_forms(lab):
    first, second = Form(lab.rng, CAPACITY), Form(lab.rng, CAPACITY)
    lab.observe("try_all", *first.traced)
    return second, lab.observe("try_all", *second.traced)


@graded(
    points=2,
    task="read_all",
    title="Another model, page or threshold compiles nothing",
    hint="Other values should find the compiled program again. A jit that is made inside the function or around a lambda is new at each call, "
    "and a value that is static is a program of its own.",
)
def test_other_values_compile_nothing(lab):
    assert compiled(lab.once(two_forms)[1]) == 0


@graded(
    points=2,
    task="read_all",
    title="Another model, page or threshold is seen",
    hint="The second call should answer for the model, page and threshold that it was given. What a jitted function closes over, or keeps in "
    "a global, stays as it was when it was traced.",
    needs=ANSWERS,
)
def test_other_values_are_seen(lab):
    second, seen = lab.once(two_forms)
    assert same_digits(seen.value, second)
    assert same_shares(seen.value, second)


# read_page ------------------------------------------------------------------------------------------------------------


@graded(
    points=2,
    task="read_page",
    title="A page gives as many answers as it has fields",
    hint="Digits and shares should have one entry for each field, in order: what was padded is cut off again, and a page without fields "
    "gives empty arrays. A full page is a page like others.",
    needs=ANSWERS,
)
def test_page_has_an_answer_for_each_field(lab):
    for count in (37, CAPACITY):
        form = Form(lab.rng, count)
        got = lab.call("try_page", *form.applied)
        assert same_digits(got, form)
        assert same_shares(got, form)
    weights, page, _, threshold = form.applied
    got = pair(lab.call("try_page", weights, page, Host(np.zeros((0, 2), "int32")), threshold))
    assert np.shape(got[0]) == np.shape(got[1]) == (0,)


def another_page(lab):
    first, second = Form(lab.rng, 41), Form(lab.rng, 18)
    lab.observe("try_page", *first.applied)
    return second, lab.observe("try_page", *second.applied)


def sure_page(lab):
    """A model that is sure of one digit, whatever it sees, asked with a threshold of exactly its share: the int 1."""
    lab.once(another_page)
    form, digit = Form(lab.rng, 23), int(lab.rng.integers(10))
    weights = form.weights | {"bias": np.where(np.arange(10) == digit, 1000, 0).astype("float32")}
    return np.where(form.shares > 0, digit, -1), lab.observe("try_page", weights, form.page, Host(form.corners), 1)


@graded(
    points=3,
    task="read_page",
    title="Another number of fields, threshold, page or model compiles nothing",
    hint="After a first page, the next should compile nothing at all. A short last chunk is a new shape, and so is each slice or jnp.pad of another "
    "length: pad and cut with NumPy. A threshold that is a Python number is static for filter_jit, and as jnp.asarray(threshold) an int is another "
    "dtype than a float.",
)
def test_another_page_compiles_nothing(lab):
    assert compiled(lab.once(another_page)[1]) == 0
    assert compiled(lab.once(sure_page)[1]) == 0


@graded(
    points=1,
    task="read_page",
    title="A share that equals the threshold is not below it",
    hint="A digit should be refused where its share is below the threshold. A share of exactly the threshold is not: >=, not >.",
    needs=ANSWERS,
)
def test_share_at_the_threshold_is_given(lab):
    digits, seen = lab.once(sure_page)
    assert np.array_equal(np.asarray(pair(seen.value)[0]), digits)


@graded(
    points=2,
    task="read_page",
    title="The second page is read with its own model and threshold",
    hint="The answers should be those of the page, model and threshold of this call. A program that is kept together with what it closed over "
    "answers for the first page.",
    needs=ANSWERS,
)
def test_second_page_is_read(lab):
    second, seen = lab.once(another_page)
    assert same_digits(seen.value, second)
    assert same_shares(seen.value, second)


@graded(
    points=3,
    task="read_page",
    title="A page starts one program",
    hint="A page should start one program (up to three with conversions). A loop over chunks on the host starts one for each, and waits in "
    "between where it fetches; stages with a jit of their own start one each. None at all is a page read by NumPy.",
)
def test_page_starts_one_program(lab):
    assert 1 <= int(lab.call("starts_of_page", *Form(lab.rng, 57).applied)) <= 3


@graded(
    points=1,
    task="read_page",
    title="Too many fields raise a ValueError",
    hint="More than CAPACITY fields should raise a ValueError. Cutting the rest off loses answers in silence, and a larger shape compiles.",
)
def test_too_many_fields_are_refused(lab):
    form = Form(lab.rng, CAPACITY + 5)
    with pytest.raises(StudentError) as caught:
        lab.call("try_page", *form.applied)
    assert caught.value.is_a("ValueError")


# agrees ---------------------------------------------------------------------------------------------------------------


def reading(lab, count=9):
    """Digits and shares, all shares far from the threshold of 0.5; one at least is above, so that there is a digit."""
    signs = lab.rng.permutation([1, *lab.rng.choice([-1, 1], count - 1)])
    shares = 0.5 + signs * lab.rng.uniform(0.1, 0.4, count)
    return np.where(shares >= 0.5, lab.rng.integers(1, 10, count), -1), shares


def agrees(lab, new, old, threshold=0.5):
    (a, b), (c, d) = ((Host(np.asarray(part)) for part in reading) for reading in (new, old))
    return bool(lab.call("agrees", (a, b), (c, d), threshold))


@graded(
    points=2,
    task="agrees",
    title="Rounding agrees",
    hint="Two readings that differ by a few roundings should agree. Fusing changes the order of sums: equality of bits asks for what no compiler promises. "
    "Up to TOLERANCE is rounding, not up to a part of it; and two readings without fields agree, where a maximum over nothing would raise.",
)
def test_rounding_agrees(lab):
    digits, shares = reading(lab)
    rounding = lab.rng.choice([-1, 1], shares.size) * lab.rng.uniform(7e-5, 9e-5, shares.size)
    assert agrees(lab, (digits, (shares + rounding).astype("float32")), (digits, shares))
    assert agrees(lab, (digits[:0], shares[:0]), (digits[:0], shares[:0]))


@graded(
    points=2,
    task="agrees",
    title="A share that is off is noticed, in any field",
    hint="A share that is off by more than TOLERANCE should be noticed wherever it is, upward and downward, also where two faults cancel in a "
    "mean and where a share is NaN, in one reading or in both. A relative tolerance or np.allclose's defaults let more through than was said.",
)
def test_share_that_is_off_is_noticed(lab):
    digits, shares = reading(lab)
    for fault in (3e-4, -3e-4, np.nan):
        one, other = lab.rng.choice(shares.size, 2, replace=False)
        off = shares.copy()
        off[one] += fault
        assert not agrees(lab, (digits, off), (digits, shares))
        off[other] -= fault
        assert not agrees(lab, (digits, off), (digits, shares))
    assert not agrees(lab, (digits, off), (digits, off))  # NaN in both
    slightly = shares.copy()
    slightly[np.argmax(shares)] += 1.015e-4
    assert not agrees(lab, (digits, slightly), (digits, shares))


@graded(
    points=2,
    task="agrees",
    title="Another digit is noticed",
    hint="A digit that differs should be noticed in any field, also if most are equal, and also if it is -1 in one reading while the share is "
    "clearly above the threshold.",
)
def test_another_digit_is_noticed(lab):
    digits, shares = reading(lab)
    at = int(np.argmax(shares))
    for instead in (digits[at] % 9 + 1, -1):
        changed = digits.copy()
        changed[at] = instead
        assert not agrees(lab, (changed, shares), (digits, shares))
        assert not agrees(lab, (digits, shares), (changed, shares))


@graded(
    points=2,
    task="agrees",
    title="A share at the threshold may be refused or not",
    hint="Where the old share is within TOLERANCE of the threshold, rounding decides: -1 in one reading and a digit in the other should agree, "
    "in either direction. Two different digits should not, there as little as elsewhere. It is the old share that is near, not the new one, and "
    "that field alone is excused.",
)
def test_tie_at_the_threshold(lab):
    digits, shares = reading(lab)
    at = int(lab.rng.integers(shares.size))
    shares[at], digits[at] = 0.5 + 2e-5, 4
    refused, other = digits.copy(), digits.copy()
    refused[at], other[at] = -1, 7
    lower = shares.copy()
    lower[at] -= 4e-5
    assert agrees(lab, (refused, lower), (digits, shares))
    assert agrees(lab, (digits, shares), (refused, lower))
    assert not agrees(lab, (other, lower), (digits, shares))
    elsewhere = refused.copy()
    elsewhere[(at + 1) % shares.size] = 4 if digits[(at + 1) % shares.size] == -1 else -1
    assert not agrees(lab, (elsewhere, lower), (digits, shares))
    near, far = shares.copy(), shares.copy()
    near[at], far[at] = 0.5 + 7e-5, 0.5 + 1.5e-4
    assert agrees(lab, (refused, far), (digits, near))
    assert not agrees(lab, (refused, near), (digits, far))


@graded(
    points=1,
    task="agrees",
    title="Another number of fields does not agree",
    hint="Readings of different length should not agree. zip stops at the shorter one, and an array of one entry broadcasts.",
)
def test_other_lengths_do_not_agree(lab):
    digits, shares = reading(lab)
    assert not agrees(lab, (digits[:-1], shares[:-1]), (digits, shares))
    same = np.full(9, 3), np.full(9, 0.7)
    assert not agrees(lab, (same[0][:1], same[1][:1]), same)
    assert not agrees(lab, (same[0][:0], same[1][:0]), same)
