"""Hidden asserts of lab 05.

Scores are the squares of evenly spaced numbers, and a threshold lies between two of them: the number of hits and their
order are beyond doubt in float32, and a mean that is not weighted by them is another one. Counts are asserted together with
values. Where traces are counted, the size of the frames is one that no other assert uses: all asserts of a submission share
one process and its caches.

The reference is the same arithmetic in float64. Positions are below 10 and a path has at most 6 frames; a right float32
answer is within about 2e-6 of it, and the wrong ones known are off by 1e-3 and more.
"""

from dataclasses import dataclass

import numpy as np

from traceonce.grade.hidden import Host, graded

SLOTS = 6
TOLERANCE = 2e-5


@dataclass(frozen=True)
class Frame:
    """Scores of shape (height, width), and a threshold that so and so many of them pass."""

    scores: np.ndarray
    threshold: float
    gain: float


def frame_with(lab, hits, size=(5, 7)):
    count = size[0] * size[1]
    ranks = lab.rng.permutation(count)
    if hits > SLOTS:  # the strongest hit is the last one in reading order, which the first ones leave out
        first, last = np.argmax(ranks), np.flatnonzero(ranks >= count - hits)[-1]
        ranks[[first, last]] = ranks[[last, first]]
    scores = ((ranks + 1) / (count + 1)) ** 2
    threshold = ((count - hits + 0.5) / (count + 1)) ** 2
    return Frame(scores.astype("float32").reshape(size), threshold, float(lab.rng.uniform(0.2, 0.8)))


def strongest(frame):
    """Places (n, 2) and scores (n,) of the strongest hits, n at most SLOTS, in float64."""
    order = np.argsort(-frame.scores, axis=None)[:SLOTS]
    order = order[frame.scores.ravel()[order] > frame.threshold]
    return np.stack(np.unravel_index(order, frame.scores.shape), 1).astype(float), np.float64(
        frame.scores.ravel()[order]
    )


def uneven_frame(lab, hits):
    """A frame of which the plain mean of the places is another than the weighted one."""
    while True:
        frame = frame_with(lab, hits)
        places, scores = strongest(frame)
        if np.abs(scores @ places / scores.sum() - places.mean(axis=0)).max() > 0.01:
            return frame


def state_of(lab):
    return {
        "position": lab.rng.uniform(1, 4, 2).astype("float32"),
        "velocity": (lab.rng.choice([-1, 1], 2) * lab.rng.uniform(0.5, 1, 2)).astype("float32"),
        "missed": np.int32(lab.rng.integers(2, 9)),
    }


def after(state, frame):
    """The state after a frame."""
    places, scores = strongest(frame)
    predicted = np.float64(state["position"]) + state["velocity"]
    if not len(scores):
        return {"position": predicted, "velocity": np.float64(state["velocity"]), "missed": int(state["missed"]) + 1}
    error = scores @ places / scores.sum() - predicted
    gain = frame.gain
    return {"position": predicted + gain * error, "velocity": state["velocity"] + 0.5 * gain * error, "missed": 0}


def clip_of(lab, hits, size=(5, 7)):
    """What `track` is given, and what it should return."""
    frames = [frame_with(lab, count, size) for count in hits]
    start = [int(number) for number in lab.rng.integers(1, 4, 2)]
    state = {"position": np.float64(start), "velocity": np.zeros(2), "missed": 0}
    path, missed = [], []
    for frame in frames:
        state = after(state, frame)
        path.append(state["position"])
        missed.append(state["missed"])
    scores = Host(np.stack([frame.scores for frame in frames]))
    arguments = (scores, [frame.threshold for frame in frames], [frame.gain for frame in frames], tuple(start))
    return arguments, np.stack(path), missed


def close(got, expected):
    return np.shape(got) == np.shape(expected) and np.allclose(got, expected, rtol=TOLERANCE, atol=TOLERANCE)


def same_state(got, expected):
    return (
        got.keys() == expected.keys()
        and close(got["position"], expected["position"])
        and close(got["velocity"], expected["velocity"])
        and int(got["missed"]) == expected["missed"]
    )


def traced(seen):
    """Traces and compiles of anything at all."""
    return seen.traces + seen.compiles + sum(seen.other_traces.values()) + sum(seen.other_compiles.values())


def found(lab, frame):
    places, scores, valid = lab.observe("detections", frame.scores, frame.threshold, jit=True).value
    return np.asarray(places), np.asarray(scores), np.asarray(valid)


# detections -----------------------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="detections",
    title="The search runs inside jit",
    hint="detections should run inside jit, where `frame` is a tracer and NumPy cannot sort or search it: "
    "np.argsort, np.argwhere and np.asarray want numbers. Use jnp and jax.lax.top_k, so that the search is "
    "part of the program.",
)
def test_search_runs_inside_jit(lab):
    places, scores, valid = found(lab, frame_with(lab, 3))
    assert places.shape == (SLOTS, 2)
    assert scores.shape == valid.shape == (SLOTS,)


@graded(
    points=2,
    task="detections",
    title="The slots hold every hit, strongest first",
    hint="Each hit should be in a slot, strongest first, its place as (row, column). Look for row and column "
    "swapped, and for an odd number of hits: rounding it to a convenient size loses some.",
)
def test_slots_hold_the_hits(lab):
    for hits in (3, 5):
        frame = frame_with(lab, hits)
        places, scores, _ = found(lab, frame)
        expected_places, expected_scores = strongest(frame)
        assert close(places[:hits], expected_places)
        assert close(scores[:hits], expected_scores)


@graded(
    points=1,
    task="detections",
    title="Of too many hits the strongest stay",
    hint="With more hits than slots, the strongest SLOTS should stay. jnp.nonzero(size=SLOTS) keeps the first ones "
    "in reading order.",
)
def test_surplus_hits_leave_the_strongest(lab):
    frame = frame_with(lab, 11)
    places, scores, valid = found(lab, frame)
    assert valid.all()
    assert close(places, strongest(frame)[0])
    assert close(scores, strongest(frame)[1])


@graded(
    points=2,
    task="detections",
    title="Empty slots are marked, and score nothing",
    hint="A slot without a hit should have valid False and score 0. Without the mask, what fills the slot is taken "
    "for a hit and moves the average.",
)
def test_empty_slots_score_nothing(lab):
    for hits in (0, 2):
        _, scores, valid = found(lab, frame_with(lab, hits))
        assert valid.tolist() == [True] * hits + [False] * (SLOTS - hits)
        assert not scores[hits:].any()


# start_state, track_frame ---------------------------------------------------------------------------------------------


@graded(
    points=1,
    task="track_frame",
    title="A frame with hits gives the tracker's numbers",
    hint="After one frame the state should be what `correct` gives for the same hits: each place is weighted by its "
    "score, the velocity moves by half the gain, and a found frame sets missed to 0.",
)
def test_frame_gives_the_numbers(lab):
    state, frame = state_of(lab), uneven_frame(lab, 4)
    got = lab.call("track_frame", state, frame.scores, frame.threshold, frame.gain)
    assert same_state(got, after(state, frame))


@graded(
    points=2,
    task="track_frame",
    title="A frame without hits coasts",
    hint="With nothing found, the position moves by the velocity, the velocity stays, and missed goes up by one. A "
    "NaN would be 0 / 0: make the divisor safe before the division.",
)
def test_frame_without_hits_coasts(lab):
    state, frame = state_of(lab), frame_with(lab, 0)
    got = lab.call("track_frame", state, frame.scores, frame.threshold, frame.gain)
    assert same_state(got, after(state, frame))


@graded(
    points=2,
    task="track_frame",
    title="A whole clip follows the path of the broken tracker",
    hint="Over a clip with many, few and no hits the path should be that of `broken_track`, which is slow and "
    "right: compare the two frame by frame.",
)
def test_clip_follows_the_path(lab):
    arguments, path, missed = clip_of(lab, hits=(3, 9, 0, 1, 7, 4))
    got_path, got_missed = lab.call("track", *arguments)
    assert close(got_path, path)
    assert list(got_missed) == missed


@graded(
    points=2,
    task="track_frame",
    title="Threshold and gain follow the arguments",
    hint="After a first frame, another threshold and gain should give another result. A value that the compiled "
    "function closes over is as old as its trace: pass both as arguments.",
)
def test_exposure_follows_the_arguments(lab):
    state, frame = state_of(lab), frame_with(lab, 3)
    lab.call("track_frame", state, frame.scores, frame.threshold, frame.gain)
    other = Frame(frame.scores, frame_with(lab, 6).threshold, frame.gain / 2)
    got = lab.call("track_frame", state, other.scores, other.threshold, other.gain)
    assert same_state(got, after(state, other))


@graded(
    points=3,
    task="track_frame",
    title="Three frames of a new size cost one trace and one compile of track_frame",
    hint="Three calls with a new size should cost one trace and one compile, and give the right state. None at all "
    "means that track_frame is not itself a compiled function; more means that its program is thrown away or "
    "made anew: jax.clear_caches(), or a jit within the call.",
)
def test_new_size_traces_once(lab):
    state, frame = state_of(lab), frame_with(lab, 4, size=(6, 5))
    seen = lab.observe("track_frame", state, frame.scores, frame.threshold, frame.gain, repeat=3)
    assert same_state(seen.value, after(state, frame))
    assert (seen.traces, seen.compiles) == (1, 1)


@graded(
    points=2,
    task="track_frame",
    title="Another threshold and gain cost no trace",
    hint="Another threshold and gain should cost no trace and no compile, and give the right state. A static "
    "argument is part of the key, and eqx.filter_jit makes every Python number static: let both be traced.",
)
def test_exposure_is_not_in_the_key(lab):
    state, frame = state_of(lab), frame_with(lab, 3, size=(3, 8))
    lab.call("track_frame", state, frame.scores, frame.threshold, frame.gain)
    other = Frame(frame.scores, frame_with(lab, 5, size=(3, 8)).threshold, frame.gain / 2)
    seen = lab.observe("track_frame", state, other.scores, other.threshold, other.gain)
    assert same_state(seen.value, after(state, other))
    assert traced(seen) == 0


@graded(
    points=3,
    task="start_state",
    title="After the first frame nothing is traced, in this clip or the next",
    hint="After a clip of one frame, the next clip of that size should trace nothing and follow the path. If its "
    "second frame traces, the state that start_state makes has other dtypes than the state that comes back: "
    "ints, or a weak float. Give each leaf its dtype.",
)
def test_second_frame_traces_nothing(lab):
    size = (7, 4)
    first, _, _ = clip_of(lab, hits=(2,), size=size)
    lab.call("track", *first)
    arguments, path, missed = clip_of(lab, hits=(5, 0, 8, 3), size=size)
    seen = lab.observe("track", *arguments)
    got_path, got_missed = seen.value
    assert close(got_path, path)
    assert list(got_missed) == missed
    assert traced(seen) == 0


@graded(
    points=1,
    task="start_state",
    title="The first state has the form of every later one",
    hint="start_state should give position and velocity as float32 of shape (2,), and missed as an integer 0. The "
    "position comes as two Python ints, and an int array is another contract than the floats that come back. "
    "Give each leaf its dtype.",
)
def test_first_state_has_its_form(lab):
    start = tuple(int(number) for number in lab.rng.integers(1, 9, 2))
    state = lab.call("start_state", start)
    assert state.keys() == {"position", "velocity", "missed"}
    for name, values in {"position": start, "velocity": (0, 0)}.items():
        assert np.asarray(state[name]).dtype == np.float32
        assert close(state[name], np.float64(values))
    assert np.asarray(state["missed"]).dtype.kind == "i"
    assert int(state["missed"]) == 0


# compile_guarded ------------------------------------------------------------------------------------------------------


def lengths(lab, count):
    """Different lengths."""
    return [int(number) for number in lab.rng.choice(np.arange(3, 40), count, replace=False)]


@graded(
    points=2,
    task="compile_guarded",
    title="Without TRACE_GUARD the function is left as it was",
    hint="Not set, empty or '0' means off: return jax.jit(function) and nothing else. A wrapper that only counts, "
    "or that never raises, still costs something on every trace and stands in every traceback.",
)
def test_guard_is_free_when_off(lab):
    for setting in (None, "", "0"):
        assert lab.call("guard_log", setting, []) == [True]


@graded(
    points=1,
    task="compile_guarded",
    title="Without TRACE_GUARD new shapes are allowed",
    hint="Nobody asked for a guard, so new shapes should pass. Look at os.environ before you wrap, and treat '0' as "
    "off.",
)
def test_guard_is_silent_when_off(lab):
    one, two, three = lengths(lab, 3)
    assert lab.call("guard_log", lab.rng.choice(["", "0"]).item(), [one, two, three])[:3] == [one, two, three]


@graded(
    points=2,
    task="compile_guarded",
    title="With TRACE_GUARD a known shape never raises",
    hint="Calls with one shape should never raise. A guard outside of jit counts calls; inside, it counts traces: "
    "jax.jit(guard(function)).",
)
def test_known_shapes_never_raise(lab):
    (one,) = lengths(lab, 1)
    assert lab.call("guard_log", "1", [one, one, one])[:3] == [one, one, one]


@graded(
    points=2,
    task="compile_guarded",
    title="With TRACE_GUARD a trace too many raises",
    hint="With TRACE_GUARD set, a second shape should raise a RuntimeError. Read the variable when compile_guarded "
    "is called, not when the cell is run; any value but '' and '0' means on.",
)
def test_trace_too_many_raises(lab):
    one, two = lengths(lab, 2)
    for setting in ("1", "yes"):
        assert lab.call("guard_log", setting, [one, one, two])[:3] == [one, one, "RuntimeError"]


@graded(
    points=1,
    task="compile_guarded",
    title="The limit is max_traces",
    hint="With max_traces=2, two shapes are fine and the third should raise. Is the limit written into the code?",
)
def test_limit_is_the_argument(lab):
    one, two, three = lengths(lab, 3)
    assert lab.call("guard_log", "1", [one, two, one, three], 2)[:4] == [one, two, one, "RuntimeError"]


@graded(
    points=1,
    task="compile_guarded",
    title="Each guarded function has its own count",
    hint="A second guarded function should start its count from zero. A counter in a global is shared by all: keep "
    "it in the wrapper.",
)
def test_guards_count_for_themselves(lab):
    one, two = lengths(lab, 2)
    for length in (one, two):
        assert lab.call("guard_log", "1", [length, length])[:2] == [length, length]


# check_direction ------------------------------------------------------------------------------------------------------


def passes(lab):
    return lab.call("notices") is False


@graded(
    points=1,
    task="check_direction",
    title="The test passes on the honest code, as often as it is run",
    hint="The test should return quietly on code that is right, each time. Compute the expected numbers by hand: v "
    "divided by its length + 0.001, to about four digits.",
)
def test_honest_code_passes(lab):
    assert passes(lab)
    assert passes(lab)


@graded(
    points=3,
    task="check_direction",
    title="The test notices another constant",
    hint="With another EPS your test should raise an AssertionError, also when it has passed before. A test is "
    "blind if it ran an old program (clear its cache, run the plain body, or jit a fresh closure), if its "
    "input is so long that the constant does not matter, or if it computes what it expects from EPS itself.",
)
def test_notices_another_constant(lab):
    assert passes(lab)
    for factor in (lab.rng.uniform(3, 30), lab.rng.uniform(0.05, 0.4)):
        assert lab.call("notices", EPS=0.001 * float(factor))


@graded(
    points=2,
    task="check_direction",
    title="The test notices an edited function",
    hint="An edited body should make your test raise an AssertionError. One short vector is not enough to see every "
    "edit: add one that is long, with a negative entry, and compare each entry of the result.",
)
def test_notices_an_edited_function(lab):
    assert passes(lab)
    for old, new in {"sqrt": "abs", "sum": "max", "return v": "return abs(v)", "v**2": "v"}.items():
        assert lab.call("notices_edit", old, new)


@graded(
    points=2,
    task="check_direction",
    title="The test passes again once the code is honest again",
    hint="Your test should notice a sabotage, and pass again once the code is honest. Clear the trace before you "
    "test, not after: an assert that raises skips what follows, and leaves a sabotaged program behind.",
)
def test_passes_after_sabotage(lab):
    assert passes(lab)
    assert lab.call("notices", EPS=float(lab.rng.uniform(0.005, 0.05)))
    assert passes(lab)
