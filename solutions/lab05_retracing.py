# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3 (ipykernel)
#     language: python
#     name: python3
#   traceonce:
#     lab: lab05_retracing
# ---

# %% [markdown]
# # Lab 05 · One contract, one compile
#
# ## Situation
#
# A tracker follows one bright spot through a video. On a recorded clip it was fast; live it stutters on every frame, and
# after an hour the process is large. It compiles for each frame, and for four reasons at once. Each of them was reported by
# somebody: [shapes from data](https://github.com/jax-ml/jax/issues/2072),
# [a new function each turn](https://github.com/jax-ml/jax/issues/9288),
# [static numbers](https://github.com/patrick-kidger/equinox/issues/645),
# [a weak start](https://github.com/jax-ml/jax/issues/4274).
#
# You make it trace once **without changing its answers**, build a guard, and write a test that can fail. About 35 minutes.

# %% [markdown]
# **How this works.** Write into the cells that say `YOUR CODE HERE`, and keep helper functions inside those cells: only
# they are graded. The cell below each task holds *visible* asserts. They answer at once, and they are not all:
# `traceonce grade` runs hidden ones on random data. It counts traces and compiles, and it compares values: fewer traces
# with another answer earn nothing.

# %% nbgrader={"grade": false, "grade_id": "given_tracker", "locked": true, "schema_version": 3, "solution": false, "task": false}
import inspect
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from traceonce import explain, watch

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

SLOTS = 6  # a frame with more hits keeps the strongest six


# %% nbgrader={"grade": false, "grade_id": "given_correct", "locked": true, "schema_version": 3, "solution": false, "task": false}
def correct(state, places, scores, gain):
    """One frame: predict, then move towards the hits. Shapes (n, 2) and (n,); n may be 0."""
    predicted = state["position"] + state["velocity"]
    if len(scores) == 0:  # nothing found: coast
        return {"position": predicted, "velocity": state["velocity"], "missed": state["missed"] + 1}
    measured = scores @ places / scores.sum()
    error = measured - predicted
    velocity = state["velocity"] + 0.5 * gain * error
    return {"position": predicted + gain * error, "velocity": velocity, "missed": 0}


# %% nbgrader={"grade": false, "grade_id": "given_broken", "locked": true, "schema_version": 3, "solution": false, "task": false}
def broken_track(frames, thresholds, gains, position):
    """The tracker as it was found: the positions, one a frame."""
    state = {"position": np.array(position), "velocity": np.zeros(2), "missed": 0}
    path = []
    for frame, threshold, gain in zip(frames, thresholds, gains, strict=True):
        places = np.argwhere(frame > threshold)
        scores = frame[frame > threshold]
        strongest = np.argsort(-scores)[:SLOTS]
        one_frame = eqx.filter_jit(lambda *arguments: correct(*arguments))
        state = one_frame(state, places[strongest].astype("float32"), scores[strongest], gain)
        path.append(np.asarray(state["position"]))
    return np.stack(path)


# %% [markdown]
# Frames are `(height, width)` arrays of scores. A **hit** is a pixel above the threshold; its place is `(row, column)`.
# Threshold and gain come from the camera's exposure control, so they may be other numbers for each frame. Here is a clip of
# three frames, and the symptom.

# %% nbgrader={"grade": false, "grade_id": "given_symptom", "locked": true, "schema_version": 3, "solution": false, "task": false} tags=["for-show"]
clip = np.zeros((3, 4, 5), "float32")
clip[0, 1, 1], clip[0, 1, 2] = 0.9, 0.6
clip[1, 1, 2], clip[1, 2, 2], clip[1, 2, 3] = 0.5, 1.0, 0.5
thresholds, gains = [0.5, 0.4, 0.5], [0.5, 0.5, 0.25]

with watch() as seen:
    expected_path = broken_track(clip, thresholds, gains, position=(1, 1))
print(expected_path.astype("float64").round(3).tolist())
print("frames:", len(clip), " traces:", seen.total.traces)

# %% [markdown]
# ## Task 1 · detections
#
# *8 minutes.* The shape of the hits must not depend on the data. `detections(frame, threshold)` returns three arrays of
# fixed length: `places`, shape `(SLOTS, 2)`, float32; `scores`, shape `(SLOTS,)`; and `valid`, shape `(SLOTS,)`, which is
# True for hits. Strongest first. Slots that are not filled have score 0. It runs inside `jit`.
#
# Look back at [Shapes made by data](../course/05_retracing/05_retracing.ipynb#Shapes-made-by-data).
#
# `jax.lax.top_k(vector, k)` gives the `k` largest values and their indices, and `jnp.unravel_index` turns a flat index into
# row and column.
#
# <details><summary>If it raises a TracerArrayConversionError</summary>
#
# A NumPy function was given a tracer: `np.argsort`, `np.argwhere`. Inside `jit` the numbers do not exist yet; the functions
# of `jnp` and `jax.lax` work on tracers.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "detections", "locked": false, "schema_version": 3, "solution": true, "task": false}
def detections(frame, threshold):
    """The strongest hits in SLOTS slots: places (SLOTS, 2), scores (SLOTS,), valid (SLOTS,)."""
    ### BEGIN SOLUTION
    scores, index = jax.lax.top_k(frame.ravel(), SLOTS)
    valid = scores > threshold
    places = jnp.stack(jnp.unravel_index(index, frame.shape), axis=1).astype("float32")
    return places, jnp.where(valid, scores, 0), valid
    ### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_detections", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
places, scores, valid = jax.jit(detections)(clip[1], 0.45)
shapes = [jnp.shape(part) for part in (places, scores, valid)]
assert shapes == [(6, 2), (6,), (6,)], f"expected shapes (6, 2), (6,), (6,); got {shapes}."
hits, first = valid.tolist(), places[0].tolist()
assert hits == [True] * 3 + [False] * 3, f"expected three hits, strongest first; valid is {hits}."
assert first == [2.0, 2.0], f"expected the strongest hit at row 2, column 2; got {first}."
scores = scores.tolist()
assert scores == [1.0, 0.5, 0.5, 0, 0, 0], f"expected 1.0, 0.5, 0.5, then zeros; got {scores}."
print("Task 1: the visible asserts pass. Hidden ones use other sizes and numbers of hits.")

# %% [markdown]
# ## Task 2 · Trace once
#
# *12 minutes, the heart of the lab.* Two functions. `start_state(position)` makes the first state from two Python numbers:
# a dict with `position` and `velocity`, shape `(2,)`, float32, and `missed`, a count. `one_frame(state, frame, threshold,
# gain)` does for a whole frame what `correct` does after the search: same numbers, same keys.
#
# Look back at [Weak types](../course/05_retracing/05_retracing.ipynb#Weak-types)
# and at [Static or traced](../course/05_retracing/05_retracing.ipynb#Static-or-traced).
#
# `track_frame` is `one_frame`, compiled: one program for every frame, threshold and gain, from the second frame on
# without a trace and without a compile. How it is compiled is yours to decide; the last line of the cell is a proposal.

# %% [markdown]
# <details><summary>If the second frame compiles again</summary>
#
# `print(explain(watched))` names the leaf. The state that goes in must have the dtypes of the state that comes out: an int
# position, a Python 0 or a weak float is another contract.
#
# </details>
#
# <details><summary>If a position is NaN</summary>
#
# A frame without hits divides 0 by 0. Make the divisor safe *before* the division, `jnp.where(total > 0, total, 1)`, and
# choose the result with `jnp.where` afterwards.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "start_state", "locked": false, "schema_version": 3, "solution": true, "task": false}
def start_state(position):
    """The state before the first frame, from a pair of Python numbers."""
    ### BEGIN SOLUTION
    position = jnp.asarray(position, jnp.float32)
    return {"position": position, "velocity": jnp.zeros(2, jnp.float32), "missed": jnp.int32(0)}
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "track_frame", "locked": false, "schema_version": 3, "solution": true, "task": false}
def one_frame(state, frame, threshold, gain):
    """The state after this frame."""
    ### BEGIN SOLUTION
    places, scores, valid = detections(frame, threshold)
    found, total = valid.any(), scores.sum()
    predicted = state["position"] + state["velocity"]
    measured = scores @ places / jnp.where(found, total, 1)
    error = jnp.where(found, measured - predicted, 0)
    return {
        "position": predicted + gain * error,
        "velocity": state["velocity"] + 0.5 * gain * error,
        "missed": jnp.where(found, 0, state["missed"] + 1),
    }
    ### END SOLUTION


track_frame = jax.jit(one_frame)


# %% [markdown]
# `track` is given: it calls your two functions for each frame of a clip. `counted` runs it under the observer.


# %% nbgrader={"grade": false, "grade_id": "given_track", "locked": true, "schema_version": 3, "solution": false, "task": false}
def track(frames, thresholds, gains, position):
    """The positions and the counts of missed frames, one of each a frame."""
    state, path, missed = start_state(position), [], []
    for frame, threshold, gain in zip(frames, thresholds, gains, strict=True):
        state = track_frame(state, frame, threshold, gain)
        path.append(np.asarray(state["position"]))
        missed.append(int(state["missed"]))
    return np.stack(path), missed


# %% nbgrader={"grade": true, "grade_id": "test_track_frame", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
with watch() as seen:
    path, missed = track(clip, thresholds, gains, position=(1, 1))
want, got = expected_path.tolist(), path.tolist()
assert np.allclose(path, expected_path, atol=1e-5), f"expected {want}; got {got}."
assert missed == [0, 0, 1], f"expected the third frame to be missed, [0, 0, 1]; got {missed}."
assert hasattr(track_frame, "lower"), "expected track_frame to be compiled, as by jax.jit."
traces = seen.total.traces
assert traces == 1, f"expected 1 trace for 3 frames; got {traces}.\n{explain(seen)}"
print("Task 2: the visible asserts pass. Hidden ones use longer clips and other exposures.")

# %% [markdown]
# ## Task 3 · A guard that is free when off
#
# *7 minutes.* `compile_guarded(function, max_traces=1)` returns `function`, compiled by `jax.jit`. It looks at the environment
# variable `TRACE_GUARD` when it is called.
#
# Look back at [How you would know](../course/05_retracing/05_retracing.ipynb#How-you-would-know)
# and at [A guard that is free when nobody asks](../course/05_retracing/05_retracing.ipynb#A-guard-that-is-free-when-nobody-asks).
#
# - Not set, empty or `"0"`: nothing is added. The result's `__wrapped__` is `function` itself.
# - Anything else: a trace beyond `max_traces` raises a `RuntimeError`. Calls with a known shape never do.
#
# `eqx.debug.assert_max_traces(f, max_traces=n)` raises when `f` is *called* too often.
#
# <details><summary>If the guard raises on the second call with the same shape</summary>
#
# It is around the compiled function and counts calls. Inside, `jit` calls it once a trace.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "compile_guarded", "locked": false, "schema_version": 3, "solution": true, "task": false}
def compile_guarded(function, max_traces=1):
    """`function` under `jax.jit`; with TRACE_GUARD set, a trace too many raises a RuntimeError."""
    ### BEGIN SOLUTION
    if os.environ.get("TRACE_GUARD", "") not in ("", "0"):
        function = eqx.debug.assert_max_traces(function, max_traces=max_traces)
    return jax.jit(function)
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_guard_log", "locked": true, "schema_version": 3, "solution": false, "task": false}
def guard_log(setting, lengths, max_traces=1):
    """Guard a sum while TRACE_GUARD is `setting` (None: not set); call it with ones so long.

    Gives the sum or the exception's name for each call; last, whether the function is as it was.
    """
    before = os.environ.pop("TRACE_GUARD", None)
    os.environ.update({} if setting is None else {"TRACE_GUARD": setting})
    try:
        plain = lambda values: jnp.sum(values)
        guarded, said = compile_guarded(plain, max_traces), []
        for length in lengths:
            try:
                said.append(float(guarded(np.ones(length, "float32"))))
            except RuntimeError as error:
                said.append(type(error).__name__)
        return [*said, getattr(guarded, "__wrapped__", None) is plain]
    finally:
        os.environ.pop("TRACE_GUARD", None)
        os.environ.update({} if before is None else {"TRACE_GUARD": before})


# %% nbgrader={"grade": true, "grade_id": "test_compile_guarded", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
said = guard_log(None, [3, 5])
assert said == [3.0, 5.0, True], f"expected [3.0, 5.0, True] without TRACE_GUARD; got {said}."
said = guard_log("1", [3, 3, 5])[:3]
assert said == [3.0, 3.0, "RuntimeError"], f"expected the third call alone to raise; got {said}."
print("Task 3: the visible asserts pass. Hidden ones try other settings, limits and shapes.")

# %% [markdown]
# ## Task 4 · A test that can fail
#
# *8 minutes.* Here is the code under test. `EPS` decides what it does with short vectors. Write `check_direction()`: it
# raises an `AssertionError` if `direction` is wrong, and returns quietly if it is right.
#
# Look back at [Break it](../course/05_retracing/05_retracing.ipynb#Break-it)
# and at [Repair it](../course/05_retracing/05_retracing.ipynb#Repair-it).


# %% nbgrader={"grade": false, "grade_id": "given_direction", "locked": true, "schema_version": 3, "solution": false, "task": false}
EPS = 0.001


def unit(v):
    """v / (length of v + 0.001): nearly of length one, and 0 for a zero vector. Shape (n,)."""
    return v / (jnp.sqrt(jnp.sum(v**2)) + EPS)


direction = jax.jit(unit)


# %% [markdown]
# The grader sabotages the code and calls your test in the same process, after it has passed: it changes `EPS`, or edits
# `unit` and compiles it anew as `direction`. Your test must notice, and pass again afterwards. It may test the compiled
# `direction` or the body, `direction.__wrapped__`.
#
# <details><summary>If a changed EPS is not noticed</summary>
#
# Two ways to be blind. The program of an earlier call still holds the old constant: clear it, or run the plain body. Or the
# input is one where the constant hardly matters: choose a vector about as long as `EPS`. And an expected value that
# is computed *from* `EPS` changes with it.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "check_direction", "locked": false, "schema_version": 3, "solution": true, "task": false}
def check_direction():
    """Raise an AssertionError unless `direction` is right: its constant, and its length."""
    ### BEGIN SOLUTION
    direction.clear_cache()
    for v, length in ([0.003, 0.004], 0.005), ([-3.0, 4.0], 5.0):
        got = direction(np.array(v, "float32"))
        expected = np.array(v) / (length + 0.001)
        assert np.allclose(got, expected, rtol=1e-4), f"direction({v}) is {got}"
    ### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "given_sabotage", "locked": true, "schema_version": 3, "solution": false, "task": false}
def notices(**sabotage):
    """Whether `check_direction` raises an AssertionError while these globals have other values."""
    honest = {name: globals()[name] for name in sabotage}
    globals().update(sabotage)
    try:
        check_direction()
    except AssertionError:
        return True
    finally:
        globals().update(honest)
    return False


def notices_edit(old, new):
    """Whether `check_direction` notices a `direction` whose source has `new` in place of `old`."""
    scope = dict(globals())
    exec(inspect.getsource(unit).replace(old, new), scope)
    return notices(direction=jax.jit(scope["unit"]))


# %% nbgrader={"grade": true, "grade_id": "test_check_direction", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
assert not notices(), "expected the test to pass on the code as it is: it raised."
assert notices_edit("jnp.sqrt", ""), "expected it to notice a missing square root: it passed."
assert notices(EPS=0.01), "expected it to notice EPS = 0.01. Does it test an old program?"
assert not notices(), "expected it to pass on honest code again. What is left behind?"
print("Task 4: the visible asserts pass. Hidden ones sabotage the code in other ways.")

# %% [markdown]
# ## What the hidden asserts look at
#
# - Values on random clips against the same arithmetic in float64: many, few and no hits, changing thresholds and gains.
# - Traces and compiles, together with the values: the first frame may trace, no later one, in no later clip of that size.
# - That the search for hits is part of the program, and that the exposure is no part of its key.
# - The guard with several settings and limits, with equal and unequal shapes.
# - Your test on sabotaged code, and on the honest code before and after.

# %% [markdown]
# ## Going further
#
# - Put `TRACE_GUARD` around `track_frame`, and run the tracker on clips of two sizes. What should happen, and what does?
# - `SLOTS` is a global. What would `stale(track_frame)` say if it changed, and should it be an argument? Static or traced?
# - Compile `track` as a whole with `jax.lax.scan`. What becomes of the per-frame Python loop?
