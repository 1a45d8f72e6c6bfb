"""Hidden asserts of lab 10.

What a run should give is computed here in float64: order of the rows, keys and dropped pixels (threefry in NumPy), gradients,
velocities. A right float32 run of twenty-one steps is within 2e-5 of it in every loss; a forgotten key, velocity or position moves some loss
by more than 1e-2.

Two processes are asked: one trains straight through and is interrupted; `lab.fresh()` gives a second one, which gets the bytes of the file
and nothing else. One step is compiled in each.
"""

import numpy as np

from traceonce.data import digits
from traceonce.grade.hidden import Host, StudentError, graded

TOLERANCE = 5e-4
SIZE = 32


# what is expected ----------------------------------------------------------------------------------------------------


def turned(word, by):
    return (word << np.uint32(by)) | (word >> np.uint32(32 - by))


def threefry(key, second):
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011), for a first word of zeros: two words of output."""
    second = np.asarray(second, "uint32")
    schedule = [key[0], key[1], key[0] ^ key[1] ^ np.uint32(0x1BD11BDA)]
    first, second = np.zeros_like(second) + schedule[0], second + schedule[1]
    for turn in range(5):
        for by in ((13, 15, 26, 6), (17, 29, 16, 24))[turn % 2]:
            first = first + second
            second = turned(second, by) ^ first
        first = first + schedule[(turn + 1) % 3]
        second = second + schedule[(turn + 2) % 3] + np.uint32(turn + 1)
    return first, second


def halves(key):
    """What `jax.random.split(key)` gives."""
    first, second = threefry(key, [0, 1])
    return (first[:1], second[:1]), (first[1:], second[1:])


def kept_pixels(key):
    """The pixels that `step` keeps: random bits below 0.8 of their range."""
    first, second = threefry(key, np.arange(64))
    return (first ^ second) < np.uint32(0.8 * 2**32)


class Learner:
    """`begin` and `step` of the lab in float64."""

    def __init__(self, seed):
        self.w, self.b = np.zeros((64, 10)), np.zeros(10)
        self.vw, self.vb = self.w, self.b
        self.key = np.zeros(1, "uint32"), np.full(1, seed, "uint32")

    def step(self, rows, rate):
        pixels, labels = digits()
        self.key, use = halves(self.key)
        x, hot = np.float64(pixels[rows]) * kept_pixels(use), np.eye(10)[labels[rows]]
        scores = x @ self.w + self.b
        scores = scores - scores.max(axis=1, keepdims=True)
        log_of_sum = np.log(np.exp(scores).sum(axis=1, keepdims=True))
        slope = (np.exp(scores - log_of_sum) - hot) / len(rows)
        self.vw, self.vb = 0.9 * self.vw - rate * x.T @ slope, 0.9 * self.vb - rate * slope.sum(axis=0)
        self.w, self.b = self.w + self.vw, self.b + self.vb
        return float(np.mean(np.sum((log_of_sum - scores) * hot, axis=1)))


def close(got, expected):
    got = np.asarray(got, "float64")
    return got.shape == np.shape(expected) and np.allclose(got, expected, rtol=0, atol=TOLERANCE)


# train_epoch ---------------------------------------------------------------------------------------------------------


def an_epoch(lab):
    """(the learner after it, its losses, what was seen)."""
    seed, count, first = int(lab.rng.integers(1, 2**31)), int(lab.rng.integers(14, 20)), int(lab.rng.integers(0, 30))
    rate = float(lab.rng.uniform(0.2, 0.6))
    learner = Learner(seed)
    losses = [learner.step(np.arange(SIZE * i, SIZE * (i + 1)), rate) for i in range(first, first + count)]
    return learner, losses, lab.observe("try_epoch", seed, count, first, rate)


@graded(
    points=1,
    task="train_epoch",
    title="Every batch is a step, and gives its loss",
    hint="There should be one step and one loss for each batch, the last one included, in order, and what is learned should come back as it is "
    "after the last step, the key too.",
)
def test_every_batch_is_a_step(lab):
    learner, losses, seen = lab.once(an_epoch)
    learned, got, _ = seen.value
    assert close(got, losses)
    for name in ("w", "b", "vw", "vb"):
        assert close(learned[name], getattr(learner, name))
    assert np.array_equal(learned["key"].data, np.concatenate(learner.key))


@graded(
    points=3,
    task="train_epoch",
    title="An epoch reads from the device at most twice",
    hint="An epoch should read at most twice. Each of these is a read: float(loss), an f-string or print, min() or if on a loss, np.asarray of one "
    "loss, np.array or sum over a list of them. Keep the losses on the device, and fetch the list once with jax.device_get or as one "
    "stacked array.",
)
def test_epoch_reads_twice_at_most(lab):
    _, losses, seen = lab.once(an_epoch)
    assert np.shape(seen.value[1]) == np.shape(losses)
    assert seen.reads <= 2


@graded(
    points=1,
    task="train_epoch",
    title="No step is awaited",
    hint="The loop should run ahead of the device: block_until_ready on each step is the same wait as float(loss), without the number.",
)
def test_no_step_is_awaited(lab):
    _, losses, seen = lab.once(an_epoch)
    assert np.shape(seen.value[1]) == np.shape(losses)
    assert seen.waits <= 2


@graded(
    points=1,
    task="train_epoch",
    title="The log has the same lines",
    hint="For batches 0, 4, 8 and so on the log should get the loss of that batch and the smallest one up to it, not of the whole epoch, "
    "with four digits.",
)
def test_log_has_the_same_lines(lab):
    _, losses, seen = lab.once(an_epoch)
    best = np.minimum.accumulate(losses)
    lines = list(seen.value[2])
    assert [int(i) for i, _ in lines] == list(range(0, len(losses), 4))
    for i, line in lines:
        words = line.replace(",", "").split()
        assert words[::2] == ["loss", "best"]
        assert close([float(word) for word in words[1::2]], [losses[i], best[i]])


# prefetch ------------------------------------------------------------------------------------------------------------


def all_taken(lab):
    """(how many, ready, what was seen) where every batch is taken."""
    count, ready = int(lab.rng.integers(11, 17)), int(lab.rng.integers(4, 6))
    return count, ready, lab.call("try_prefetch", count=count, ready=ready)


def got_all(lab):
    count, _, seen = lab.once(all_taken)
    return seen["got"] == list(range(count))


@graded(
    points=1,
    task="prefetch",
    title="Every batch comes, in order, and then the end",
    hint="All batches should come in order, and the loop over them should end. If it waits for ever, the thread ended without a mark in the queue.",
)
def test_every_batch_comes(lab):
    assert got_all(lab)
    assert not lab.once(all_taken)[2]["hangs"]


@graded(
    points=2,
    task="prefetch",
    title="Source and prepare run in a thread of their own",
    hint="source should be read, and prepare called, in one thread that is not the one that takes the batches. A generator that does its work when "
    "it is asked reads nothing ahead.",
)
def test_worker_reads_and_prepares(lab):
    assert got_all(lab)
    seen = lab.once(all_taken)[2]
    assert seen["worker_reads"]
    assert seen["worker_prepares"]


@graded(
    points=2,
    task="prefetch",
    title="JAX stays in the thread that takes",
    hint="place should be called in the thread that takes the batches. In the worker, JAX does not see the settings of the loop, and arrays fill the "
    "device before they are wanted.",
)
def test_jax_stays_with_the_taker(lab):
    assert got_all(lab)
    assert lab.once(all_taken)[2]["taker_places"]


@graded(
    points=2,
    task="prefetch",
    title="The queue has its bound",
    hint="When one batch is taken, `ready` others should wait, and perhaps one more be in hand: queue.Queue() without a bound reads the whole source "
    "into memory, and a bound that is written into the code is not the one that was asked for.",
)
def test_queue_has_its_bound(lab):
    assert got_all(lab)
    _, ready, seen = lab.once(all_taken)
    assert ready + 1 <= seen["read_at_first"] <= ready + 2


@graded(
    points=2,
    task="prefetch",
    title="An error in the source is raised where batches are taken",
    hint="After the batches before it, the source's own error should be raised where the batches are taken. A thread's exception is printed and "
    "raised nowhere: catch it in the thread, put it into the queue, and raise it on the other side.",
)
def test_error_surfaces(lab):
    broken = int(lab.rng.integers(3, 8))
    # With 6 ready, the thread meets the error while the first batch is looked at: raised at once, it cannot come in time by chance.
    seen = lab.call("try_prefetch", count=10, ready=6, broken=broken)
    assert seen["got"] == list(range(broken))
    assert seen["error"] == f"item {broken} cannot be read"


@graded(
    points=1,
    task="prefetch",
    title="An error in prepare is raised too",
    hint="What prepare raises, of whatever kind, should be raised where the batches are taken, like what the source raises. It is called in the thread, "
    "so it should stand in the same try, and an except for one kind of error lets the others end the thread in silence.",
)
def test_error_in_prepare_surfaces(lab):
    broken = int(lab.rng.integers(3, 8))
    seen = lab.call("try_prefetch", count=10, broken=broken, broken_in="prepare")
    assert seen["got"] == list(range(broken))
    assert seen["error"] == f"item {broken} cannot be read"


@graded(
    points=2,
    task="prefetch",
    title="The thread ends when nobody takes any more",
    hint="After a break out of the loop nothing should go on running, and no more be read: the source may have no end. The thread hangs in put on a full "
    "queue: put with a timeout, and look at an event that the generator's finally sets.",
)
def test_thread_ends_early(lab):
    take = int(lab.rng.integers(2, 5))
    seen = lab.call("try_prefetch", count=40, ready=2, take=take)
    assert seen["got"] == list(range(take))
    assert seen["left_running"] == 0
    assert not seen["hangs"]
    assert seen["read"] < 40 // 2  # what was taken, what waited, and a few in hand


# save, load ----------------------------------------------------------------------------------------------------------


def values(lab):
    return {
        "w": Host(lab.rng.normal(size=(7, 5)).astype("float32")),
        "key": Host(lab.rng.integers(1, 2**32, 2, dtype="uint32")),
        "row": int(lab.rng.integers(100, 10**6)),
        "settings": f"seed {lab.rng.integers(10**6)}",
    }


def plain(given):
    return {name: value.value if isinstance(value, Host) else value for name, value in given.items()}


def same_values(back, given):
    expected = plain(given)
    return back.keys() == expected.keys() and all(np.array_equal(back[name], expected[name]) for name in expected)


def a_save(lab):
    old, new = values(lab), values(lab)
    return new, lab.call("try_save", old, new)


@graded(
    points=1,
    task="save",
    title="What was saved comes back",
    hint="load should give every entry back, bit for bit, with its name: arrays, numbers and strings, in what was saved last.",
)
def test_saved_comes_back(lab):
    new, (_, back) = lab.once(a_save)
    assert same_values(back, new)
    assert np.asarray(back["w"]).dtype == np.float32


@graded(
    points=3,
    task="save",
    title="The file is whole at every moment",
    hint="While a save runs, the path should hold the old checkpoint or the new one. Written in place, or removed before the new one is there, it is "
    "neither for a moment, and a kill comes at that moment. Write another file in the same folder (from a folder on another disk, a move is a "
    "copy), then os.replace.",
)
def test_file_is_whole(lab):
    new, (broken, back) = lab.once(a_save)
    assert same_values(back, new)
    assert broken == 0


@graded(
    points=1,
    task="save",
    title="A save that fails raises, and leaves the old file",
    hint="If an entry cannot be written, the error should reach the caller, and the old file should still load. A bare except hides a full disk until "
    "the day you need the file.",
)
def test_failing_save_leaves_the_old(lab):
    old = values(lab)
    error, back = lab.call("try_failing_save", old)
    assert error == "no space left on device"
    assert same_values(back, old)


# keep ----------------------------------------------------------------------------------------------------------------


def some_losses(lab, nans=()):
    """Steps in a random order with their losses. The best step is no multiple of 500 or 700, and far from the end."""
    steps = np.arange(100, 2100, 100)
    losses = lab.rng.uniform(0.3, 0.9, len(steps))
    best = int(lab.rng.choice([100, 200, 300, 400, 600, 800, 900]))  # not 700, which stays without being the best
    losses[steps == best] = 0.1
    for step in nans:
        losses[steps == step] = np.nan
    order = lab.rng.permutation(len(steps))
    return best, [int(step) for step in steps[order]], [float(loss) for loss in losses[order]]


@graded(
    points=1,
    task="keep",
    title="Permanent and newest ones stay",
    hint="The multiples of the spacing should stay, and the newest by their number: not those that stand last in the dict, and not by their names as "
    "text, where 900 comes after 1000. Of fewer than `newest` all should stay, and of 0 newest ones none: look at the slice.",
)
def test_permanent_and_newest_stay(lab):
    best, steps, losses = some_losses(lab)
    newest = int(lab.rng.integers(2, 5))
    kept = lab.call("try_keep", steps, losses, 500, newest)
    assert set(kept) - {best} == {500, 1000, 1500, 2000, *range(2100 - 100 * newest, 2100, 100)}
    assert lab.call("try_keep", [300, 200, 100], [0.2, 0.4, 0.6], 1000, 4) == [100, 200, 300]
    assert set(lab.call("try_keep", steps, losses, 500, 0)) == {best, 500, 1000, 1500, 2000}


@graded(
    points=2,
    task="keep",
    title="The best one stays, and no other",
    hint="The step with the smallest validation loss should stay as a milestone, however old it is, and no others beside the three tiers. A rolling "
    "window alone deletes the best.",
)
def test_best_stays(lab):
    best, steps, losses = some_losses(lab)
    assert lab.call("try_keep", steps, losses, 700, 1) == sorted({best, 700, 1400, 2000})


@graded(
    points=1,
    task="keep",
    title="A NaN is not the best",
    hint="A loss that is NaN should be no milestone. min() with a NaN gives whatever came first, and np.argmin gives the NaN.",
)
def test_nan_is_not_the_best(lab):
    for first in (1100, 1200):
        best, steps, losses = some_losses(lab, nans=(first, 1300, 1700))
        steps, losses = [first, *steps], [float("nan"), *losses]  # a dict keeps the place of its first
        assert lab.call("try_keep", steps, losses, 500, 1) == sorted({best, 500, 1000, 1500, 2000})


# train ---------------------------------------------------------------------------------------------------------------


def a_run(lab):
    """(settings, the losses that are expected)."""
    settings = {
        "seed": int(lab.rng.integers(1, 2**31)),
        "rate": float(lab.rng.uniform(0.2, 0.6)),
        "batch": SIZE,
        "rows": int(lab.rng.integers(100, 127)),  # three batches and a rest
        "epochs": 7,
        "every": int(lab.rng.choice([8, 11])),
    }
    learner, losses = Learner(settings["seed"]), []
    for epoch in range(settings["epochs"]):
        order = np.random.default_rng([settings["seed"], epoch]).permutation(settings["rows"])
        losses += [learner.step(order[SIZE * i : SIZE * (i + 1)], settings["rate"]) for i in range(3)]
    return settings, losses


def straight(lab):
    settings, _ = lab.once(a_run)
    return lab.observe("try_train", settings)


def resumed(lab):
    """(the step of the interrupt; stopped there, resumed after Ctrl-C, resumed after SIGKILL, started once more when finished).

    The new process is launched with settings that are wrong in every entry.
    """
    settings, _ = lab.once(a_run)
    stop_at = int(lab.rng.choice([13, 14]))  # inside the fifth epoch, between two saves
    stopped = lab.call("try_train", settings, stop_at=stop_at)
    finished = lab.once(straight).value["file"]
    lab.fresh()
    launched = {
        "seed": settings["seed"] + 1,
        "rate": settings["rate"] / 4,
        "batch": SIZE // 2,
        "rows": 64,
        "epochs": 2,
        "every": 1,
    }
    files = [stopped["file"], stopped["killed"], finished]
    assert all(file is not None for file in files)
    return stop_at, stopped, *(lab.call("try_train", launched, stored=Host(np.asarray(file))) for file in files)


@graded(
    points=2,
    task="train",
    title="A whole run gives the losses of every epoch",
    hint="Every epoch should take its own order of rows and drop the short rest, and the losses of all steps should come back. Look at the last epoch, at "
    "the rows of a batch, and at a key that is not carried on.",
)
def test_whole_run_gives_its_losses(lab):
    _, losses = lab.once(a_run)
    seen = lab.once(straight).value
    assert close(seen["losses"], losses)
    assert seen["steps"] == list(range(1, len(losses) + 1))


@graded(
    points=2,
    task="train",
    title="A run reads for its losses and its saves alone",
    hint="Twenty-one steps with three saves should read at most 20 times, and await nothing in between. Fetch the losses once, at the end, and for a save only "
    "what goes into the file, when a save is due.",
)
def test_run_reads_for_saves_alone(lab):
    _, losses = lab.once(a_run)
    seen = lab.once(straight)
    assert np.shape(seen.value["losses"]) == np.shape(losses)
    assert seen.reads <= 20
    assert seen.waits <= 3


@graded(
    points=4,
    task="train",
    title="Resumed after Ctrl-C, it takes the steps that were left, exactly",
    hint="Interrupted and resumed in a new process, the run should take the steps that were left, numbered since its start, with the losses of the uninterrupted one. It needs all that a step "
    "depends on: parameters, velocities, key, epoch and row, and all settings. What a global variable knows is gone with the process, and taking all steps again lasts "
    "as long as they did. The interrupt should be saved in a finally, and go on to the caller.",
    needs=("test_whole_run_gives_its_losses",),
)
def test_resumes_after_an_interrupt(lab):
    _, losses = lab.once(a_run)
    stop_at, stopped, rest, _, _ = lab.once(resumed)
    assert stopped["interrupted"]
    assert rest["steps"] == list(range(stop_at + 1, len(losses) + 1))
    assert close(rest["losses"], losses[stop_at:])
    assert np.size(stopped["file"]) > 3000  # w, b and their velocities are in it: compressed, 4000 bytes


@graded(
    points=2,
    task="train",
    title="Resumed after SIGKILL, it goes on from its last save",
    hint="A killed run should go on after the last multiple of `every`: nothing else can have been saved. A save holds the "
    "position after its step, not before it, and is done before the hook of that step.",
    needs=("test_whole_run_gives_its_losses",),
)
def test_resumes_after_a_kill(lab):
    settings, losses = lab.once(a_run)
    _, _, _, rest, _ = lab.once(resumed)
    assert lab.call("try_train", settings | {"every": 2}, stop_at=2)["killed"] is not None
    saved = settings["every"]  # once, before the interrupt
    assert rest["steps"] == list(range(saved + 1, len(losses) + 1))
    assert close(rest["losses"], losses[saved:])


@graded(
    points=1,
    task="train",
    title="A finished run takes no step, and loses none",
    hint="Started again over its last file, a finished run should take no step and return no loss. If it takes some, the last steps were never saved: save "
    "at the end as well, in the finally.",
    needs=("test_whole_run_gives_its_losses",),
)
def test_finished_run_takes_no_step(lab):
    try:
        again = lab.once(resumed)[4]
    except StudentError as error:
        raise AssertionError("a finished run raises") from error
    assert again["steps"] == []
    assert np.size(again["losses"]) == 0
