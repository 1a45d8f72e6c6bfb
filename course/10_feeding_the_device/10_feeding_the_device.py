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
# ---

# %% [markdown]
# # 10 · Keep the device busy
#
# A device that waits costs as much as one that computes. After this lesson you can draw who waits for whom, take out the
# waits that cost something, leave those that do not, and stop a run at any moment and go on as if nothing had happened.
#
# About 55 minutes.

# %% [markdown]
# ## Question
#
# Utilisation is 35 % and spiky. The maths is cheap, the code is right, and a bigger device changed nothing. Who is waiting
# for whom? First on paper, where times can be added up in the head. A batch passes four stages:

# %%
import contextlib
import inspect
import json
import os
import queue
import re
import shutil
import tempfile
import threading
import time
import zipfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

# %%
from traceonce import explain, plan, predict, syncs, watch
from traceonce.data import digits
from traceonce.sandbox import run_capped

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

# %%
PAPER = {"load": 7, "prepare": 4, "transfer": 2, "compute": 7}  # ms a batch
lasts = sum(PAPER.values())
print(f"one after the other: {lasts} ms a batch, the device busy for {PAPER['compute'] / lasts:.0%} of them")

# %% [markdown]
# There are two lanes at least. The *host* runs your Python: it loads, prepares and transfers. The *device* computes what was
# handed to it while the host goes on (lesson 07), until some line needs a number. Such a line is a **host sync**, and the
# best known is `float(loss)` on each step.

# %% [markdown]
# ## Before you run
#
# Two repairs are on the table. *No sync*: the loss stays on the device. *A thread*: it loads and prepares the next batches while
# the main thread transfers and waits. Each alone helps: 20 ms a batch become 13 or 11. Commit yourself to the combination.

# %%
question = "A thread, and no sync either: how many ms a batch?"
guess_both = predict("10-D1", question, [7, 9, 11])
question = "With the thread in place, how many ms a batch does taking out float(loss) gain?"
guess_sync = predict("10-D2", question, [0, 2, 7])

# %% [markdown]
# ## Who waits for whom
#
# The pipeline as arithmetic. `ahead` is the number of batches that may wait in the queue between the thread and the main
# thread; 0 means that there is no thread.


# %%
def on_paper(times, sync, ahead, n=8):
    """Spans (lane, begin, end) of n batches, in ms."""
    spans, main, device, made, taken = [], 0, 0, [], []

    def busy(lane, begin):
        spans.append((lane, begin, begin + times[lane]))
        return begin + times[lane]

    for i in range(n):
        if ahead:  # the thread goes on when what it holds fits into the queue
            room = taken[i - 1 - ahead] if i > ahead else 0
            made.append(busy("prepare", busy("load", max(made[-1] if made else 0, room))))
            main = max(main, made[i])
        else:
            main = busy("prepare", busy("load", main))
        taken.append(main)
        main = busy("transfer", main)
        device = busy("compute", max(main, device))
        main = device if sync else main
    return spans


# %%
def ms_a_batch(spans):
    ends = [end for lane, _, end in spans if lane == "compute"]
    return (ends[-1] - ends[0]) / (len(ends) - 1)


# %%
def table(times):
    for ahead in (0, 2):
        row = [ms_a_batch(on_paper(times, sync, ahead)) for sync in (True, False)]
        print(f"{'a thread' if ahead else 'no thread':10} sync {row[0]:4.0f} ms   no sync {row[1]:4.0f} ms")


# %% claims=["D1"]
table(PAPER)
guess_both.reveal(int(ms_a_batch(on_paper(PAPER, sync=False, ahead=2))))
thread = [ms_a_batch(on_paper(PAPER, sync, ahead=2)) for sync in (True, False)]
guess_sync.reveal(int(thread[0] - thread[1]))

# %% [markdown]
# Each lane needs its time: the thread 11, the device 7. The **slowest lane** sets the pace, and the others wait for it. With
# the thread, the loader is the slowest, so a sync costs nothing: the device would have waited anyway. A picture shows it at
# a glance.

# %%
from html import escape

from IPython.display import SVG, display

LANES = ("load", "prepare", "transfer", "compute")
TEXT = '<text x="{}" y="{}" font-size="12" font-family="sans-serif" fill="#1f2328" text-anchor="{}">{}</text>'
BOX = '<rect x="{:.1f}" y="{}" width="{:.1f}" height="16" fill="{}" stroke="#1f2328"><title>{}</title></rect>'


# %%
def lanes(title, spans, unit="ms"):
    """One row a stage; every second batch is dark."""
    zero, until = min(b for _, b, _ in spans), max(e for _, _, e in spans)
    x_of = lambda at: 80 + 540 * (at - zero) / (until - zero)
    about = f"{title}: {until - zero:.0f} {unit} for {sum(lane == 'load' for lane, _, _ in spans)} batches."
    parts = [f"<title>{escape(about)}</title>", '<rect width="640" height="136" fill="#fff"/>']
    parts.append(TEXT.format(8, 16, "start", escape(about)))
    for row, lane in enumerate(LANES):
        parts.append(TEXT.format(74, 41 + 26 * row, "end", lane))
        for i, (_, b, e) in enumerate(span for span in spans if span[0] == lane):
            box = (x_of(b), 28 + 26 * row, max(1, x_of(e) - x_of(b)), ("#59636e", "#d1d9e0")[i % 2])
            parts.append(BOX.format(*box, f"{lane} {i}"))
    display(
        SVG(
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 136" width="640" role="img">{"".join(parts)}</svg>'
        )
    )


# %% claims=["D1"]
lanes("No thread, a sync", on_paper(PAPER, sync=True, ahead=0))
lanes("No thread, no sync", on_paper(PAPER, sync=False, ahead=0))
lanes("A thread, a sync", on_paper(PAPER, sync=True, ahead=2))

# %% [markdown]
# Read a picture from the bottom: gaps in *compute* are what utilisation counts. Then ask who never rests. In the last picture it is the
# thread, whose *load* and *prepare* follow each other without a gap. Shorten that; nothing else will help. With a load of 3 ms it is the
# sync that counts:

# %% claims=["D1"]
table(PAPER | {"load": 3})

# %% [markdown]
# ### Measured
#
# Now a real loop: digits in files, a small network, plain gradient descent. The files lie on this machine, so a pause stands in for
# a disk far away; the rest is what it is. The network and its step come first, then the three stages of the host.

# %%
pixels, labels = digits()
folder = Path(tempfile.mkdtemp())
for i in range(14):
    np.savez(folder / f"{i}.npz", x=pixels[128 * i : 128 * (i + 1)], y=labels[128 * i : 128 * (i + 1)])


# %%
def begin(width=512):
    first, second = jax.random.split(jax.random.key(0))
    return {
        "w": jax.random.normal(first, (64, width)) / 8,
        "v": jax.random.normal(second, (width, width)) / width**0.5,
        "out": jnp.zeros((width, 10)),
    }


# %%
def cross_entropy(scores, y):
    return -jnp.mean(jax.nn.log_softmax(scores)[jnp.arange(len(y)), y])


def loss_of(params, x, y):
    hidden = jnp.tanh(jnp.tanh(x @ params["w"]) @ params["v"])
    return cross_entropy(hidden @ params["out"], y)


# %%
@jax.jit
def step(params, x, y):
    loss, grads = jax.value_and_grad(loss_of)(params, x, y)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), loss


# %%
spans = []


@contextlib.contextmanager
def timed(lane):
    begun = time.perf_counter()
    yield
    spans.append((lane, 1e3 * begun, 1e3 * time.perf_counter()))


# %%
def load_and_prepare(i):
    """Batch i as NumPy arrays, each image moved by up to one pixel."""
    with timed("load"), np.load(folder / f"{i}.npz") as file:
        time.sleep(0.015)
        x, y = file["x"].reshape(-1, 8, 8), file["y"]
    with timed("prepare"):
        moves = np.random.default_rng(i).integers(-1, 2, (len(x), 2))
        return np.stack([np.roll(one, move, (0, 1)) for one, move in zip(x, moves, strict=True)]).reshape(-1, 64), y


# %% [markdown]
# When does the device begin and end? A thread that does nothing else waits for each result and looks at the clock. It is there for
# the picture only.

# %%
stopwatch = ThreadPoolExecutor(1)


# %%
def computing(result):
    """Note the span in which the device computes this result."""
    queued = 1e3 * time.perf_counter()

    def wait():
        jax.block_until_ready(result)
        before = [end for lane, _, end in spans if lane == "compute"]
        spans.append(("compute", max([queued, *before]), 1e3 * time.perf_counter()))

    return stopwatch.submit(wait)


# %%
def to_device(rows):
    with timed("transfer"):
        return jax.block_until_ready(jax.device_put(rows))


# %% [markdown]
# The serial loop as most people write it, and one that asks a thread for the next batch before it uses this one. A `Future` is the
# smallest prefetcher there is.


# %%
def serial(n=14):
    params, losses = begin(), []
    for i in range(n):
        params, loss = step(params, *to_device(load_and_prepare(i)))
        done = computing(loss)
        losses.append(float(loss))  # the sync
        done.result()  # the stopwatch has looked
    return losses


# %%
def overlapped(n=14):
    params, losses = begin(), []
    with ThreadPoolExecutor(1) as reader:
        coming = reader.submit(load_and_prepare, 0)
        for i in range(n):
            rows = coming.result()
            if i + 1 < n:
                coming = reader.submit(load_and_prepare, i + 1)
            params, loss = step(params, *to_device(rows))
            done = computing(loss)
            losses.append(loss)
    done.result()
    return np.asarray(jnp.stack(losses)).tolist()


# %%
def beside(spans):
    """How many loads ran, at least in part, while the device computed."""
    of = lambda lane: [(b, e) for name, b, e in spans if name == lane]
    return sum(any(b < end and begin < e for begin, end in of("compute")) for b, e in of("load"))


# %%
serial(2)  # compile
measured = {}
for loop in (serial, overlapped):
    spans.clear()
    measured[loop.__name__] = (loop(), list(spans))

# %% [markdown]
# How many of the 14 loads ran while the device computed?

# %% claims=["D1"]
counted = {name: beside(spans) for name, (_, spans) in measured.items()}
print("serial:", counted["serial"], " overlapped, more than half of 14:", counted["overlapped"] > 7)
print("same losses:", np.allclose(measured["serial"][0], measured["overlapped"][0], rtol=1e-5))

# %% tags=["nbval-ignore-output"] ignored="seconds differ from run to run"
for name, (_, spans_of_it) in measured.items():
    lanes(name.capitalize(), spans_of_it)

# %% [markdown]
# In your picture of the overlapped loop, which lane has no gaps? If it is *load*, a second reader would help; if it is *compute*, you are
# done. What prints is the order of the stages in time. The milliseconds are those of your machine.

# %% [markdown]
# ### Lines that wait
#
# The sync is easy to see in `float(loss)`. Which of these seven uses of a loss `y` wait for the device?

# %%
uses = {
    "y.shape": lambda y: y.shape,
    "y + 1": lambda y: y + 1,
    "float(y)": float,
    "if y > 0": lambda y: 1 if y > 0 else 0,
    "np.asarray(y)": np.asarray,
    "y.item()": lambda y: y.item(),
    'f"{y:.2f}"': lambda y: f"{y:.2f}",
}

# %%
guess = predict("10-I05", "How many of " + ", ".join(uses) + " bring a value to the host?", [2, 3, 4, 5])

# %% claims=["D2"]
reads = {}
for name, use in uses.items():
    with syncs() as seen:
        use(step(begin(), pixels[:128], labels[:128])[1])
    reads[name] = seen.reads
print(reads)
guess.reveal(sum(reads.values()))

# %% [markdown]
# `traceonce.syncs` counts them where they happen. JAX's own guard cannot, if you learn on a CPU: there is nothing to transfer, so
# there is nothing to forbid ([2023](https://github.com/jax-ml/jax/issues/16602)). The wait is there all the same.

# %% claims=["D2"]
loss = step(begin(), pixels[:128], labels[:128])[1]
try:
    with jax.transfer_guard_device_to_host("disallow"):
        float(loss)
    said = "nothing"
except jax.errors.JaxRuntimeError as error:
    said = type(error).__name__
print("the guard is silent on a CPU, and only there:", (said == "nothing") == (jax.default_backend() == "cpu"))

# %% [markdown]
# Now a loop that logs. There is no `float` in it, and the progress line is only printed on every fifth step. How often does it
# wait in 20 steps?


# %%
def logging_loop(n=20):
    params, best, lines = begin(), np.inf, []
    for i in range(n):
        params, loss = step(params, pixels[:128], labels[:128])
        best = min(best, loss)
        if i % 5 == 0:
            lines.append(f"step {i}: {loss:.3f}, best {best:.3f}")
    return lines


# %%
guess = predict("10-D2b", "How many reads in 20 steps?", [4, 8, 20, 28])

# %% claims=["D2"]
with syncs() as seen:
    logging_loop()
by = Counter(sync.how for sync in seen)
print("reads:", seen.reads, dict(by))
guess.reveal(seen.reads)

# %% [markdown]
# `min(best, loss)` compares, Python wants a bool of the comparison, and that is a read on each step. Four lines of log read two
# values each. The repair: keep all on the device, stack, fetch once.


# %%
def quiet_loop(n=20):
    params, losses = begin(), []
    for _ in range(n):
        params, loss = step(params, pixels[:128], labels[:128])
        losses.append(loss)
    losses = np.asarray(jnp.stack(losses))
    best = np.minimum.accumulate(losses)
    return [f"step {i}: {losses[i]:.3f}, best {best[i]:.3f}" for i in range(0, n, 5)]


# %% claims=["D2"]
with syncs() as seen:
    lines = quiet_loop()
print("reads:", seen.reads, " same lines:", lines == logging_loop())

# %% [markdown]
# Fetching element by element is the same fault in one line ([2019](https://github.com/jax-ml/jax/issues/390)): somebody plots
# a curve of 1000 points with a list comprehension.

# %%
curve = jnp.arange(1000.0)


def one_by_one():
    return [float(curve[i]) for i in range(1000)]


# %%
def at_once():
    return np.asarray(curve).tolist()


# %% claims=["D2"]
took = {}
for get in (one_by_one, at_once, one_by_one, at_once):  # the second time counts
    start = time.perf_counter()
    with syncs() as seen:
        got = get()
    took[get] = time.perf_counter() - start
    print(f"{get.__name__:10} reads {seen.reads:4}  right: {got == list(map(float, range(1000)))}")
print("over 20 times faster at once:", took[one_by_one] > 20 * took[at_once])

# %% [markdown]
# ### What a sync costs
#
# Is `float(loss)` a crime, then? Somebody measured an honest comparison and found 4 %; the lost time was in the loader
# ([2026](https://github.com/lnccbrown/LANfactory/pull/120)). Without a thread, a sync adds up host and device where they could
# overlap, so it costs at most the **shorter** of the two.

# %% claims=["D2"]
host = PAPER["load"] + PAPER["prepare"] + PAPER["transfer"]
for device in (1, 7, 13, 50):
    times = PAPER | {"compute": device}
    with_sync, without = (ms_a_batch(on_paper(times, sync, 0)) for sync in (True, False))
    bound = min(host, device) / (host + device)
    print(f"host {host}, device {device:2}: gain {1 - without / with_sync:3.0%}, bound {bound:3.0%}")

# %% [markdown]
# So it is between nothing and one half, and never more. Measure, then decide. A read on every hundredth step is invisible in
# any of these, and it tells you early that a loss is NaN.

# %% [markdown]
# ## A thread that reads ahead
#
# A `Future` holds one batch. A queue holds several, which evens out a disk that stutters. Three things go wrong in such threads, and each is
# silent. Here is one that you find in many repositories.


# %%
END = object()


# %%
def first_try(batches):
    waiting = queue.Queue()

    def work():
        try:
            for batch in batches:
                waiting.put(batch)
        finally:
            waiting.put(END)  # or the main thread waits for ever

    threading.Thread(target=work, daemon=True).start()
    while (batch := waiting.get()) is not END:
        yield batch


# %%
made = []


# %%
def source(n, broken=None):
    made.clear()
    for i in range(n):
        if i == broken:
            raise OSError(f"file {i} cannot be read")
        made.append(i)
        yield np.full(3, i, "float32")


# %%
question = "Ten files, and file 6 is broken. What does list(first_try(source(10, broken=6))) do?"
outcomes = ["raises OSError", "waits for ever", "gives 6 batches"]
guess = predict("10-D3", question, outcomes)

# %% claims=["D3"]
hook, threading.excepthook = threading.excepthook, lambda about: None  # the log that nobody reads
try:
    got = len(list(first_try(source(10, broken=6))))
    guess.reveal(outcomes[2] if got == 6 else f"gives {got} batches")
finally:
    threading.excepthook = hook

# %% [markdown]
# A short epoch, and no error. Python prints a thread's traceback to standard error, raises it nowhere, and the training goes on with
# six tenths of the data. Without the `finally` it would wait for ever. The second fault: how far ahead does the thread read, if
# the main thread is slow?


# %%
def settled():
    """How many batches were made, once the thread makes no more."""
    before = -1
    while before != len(made):
        before = len(made)
        time.sleep(0.4)
    return before


# %%
guess = predict("10-D3b", "One batch of 500 has been taken. How many were made?", ["about 3", "about 50", "500"])

# %% claims=["D3"]
batches = first_try(source(500))
next(batches)
ahead = settled()
guess.reveal("500" if ahead == 500 else "about 3")

# %% [markdown]
# All of them, in RAM. With images it is the memory that lesson 08 killed a process for. The repair: a queue with a **bound**, what
# the thread raises travels through the queue, and the thread ends when nobody wants its batches any more.


# %%
def offer(waiting, stop, item):
    """Put an item into the queue, unless the other side has stopped."""
    while not stop.is_set():
        with contextlib.suppress(queue.Full):
            return waiting.put(item, timeout=0.05)


# %%
def fill(waiting, stop, batches):
    """What the thread does: NumPy alone."""
    try:
        for batch in batches:
            offer(waiting, stop, (batch, None))
            if stop.is_set():
                return
        offer(waiting, stop, (END, None))
    except Exception as error:  # noqa: BLE001  whatever it is, it belongs to the other side
        offer(waiting, stop, (END, error))


# %%
def prefetch(batches, ready=2):
    """The batches in order, made in a thread; at most `ready` wait. Raises what the thread raised."""
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, batches))
    thread.start()
    try:
        while True:
            batch, error = waiting.get()
            if error is not None:
                raise error
            if batch is END:
                return
            yield batch
    finally:
        stop.set()
        thread.join()


# %% claims=["D3"]
taken = []
try:
    for batch in prefetch(source(10, broken=6)):
        taken.append(int(batch[0]))
except OSError as error:
    print(taken, "then", type(error).__name__ + ":", error)

batches = prefetch(source(500))
next(batches)
print("made after one was taken:", settled(), " (1 taken, 2 waiting, 1 in hand)")
threads = threading.active_count()
batches.close()
print("threads that ended on close:", threads - threading.active_count())

# %% [markdown]
# ### No JAX in the thread
#
# JAX may be called from several threads. Why keep it out, then? One reason is that its settings, when set for a block, hold for one
# **thread**. The code below sets the matmul precision around the whole loop.


# %%
@jax.jit
def project(x):
    return x @ x


eye = np.eye(3, dtype="float32")
question = "project runs in the main thread, then in a worker, same argument: how many compiles?"
guess = predict("10-D3c", question, [1, 2])

# %% claims=["D3"]
worker = ThreadPoolExecutor(1)
with watch() as seen, jax.default_matmul_precision("default"):
    project(eye)
    worker.submit(project, eye).result()
guess.reveal(seen["project"].compiles)
print(explain(seen)[0].changes[0])
with jax.enable_x64(True):
    kinds = jnp.ones(1).dtype, worker.submit(lambda: jnp.ones(1).dtype).result()
print("main thread:", kinds[0], " worker:", kinds[1])

# %% [markdown]
# The worker computed in another precision, and compiled for it. Besides: its programs stand in the same queue as your steps, its
# arrays take device memory before they are wanted, a key that it splits makes results depend on who was first. NumPy in the thread, JAX in
# the main thread, and none of it can happen.

# %% [markdown]
# ## Move less, compute less
#
# The shortest stage is one that is left out. Five ways, each with what it saves, and two of them with what they do not.
#
# ### Generate or load
#
# A batch of 128 images gets noise of its own. It can be read from a file, drawn by NumPy, or drawn on the device from a key. Which
# bytes move on each step?

# %%
guess_cached = predict(
    "10-D4",
    "How much faster is an epoch if all digits lie on the device, and none is uploaded?",
    ["under 2 times", "over 2 times"],
)

# %%
key = jax.random.key(3)
drawn = np.random.default_rng(3).normal(size=(128, 64)).astype("float32")
on_device = jax.jit(lambda key: jax.random.normal(key, (128, 64)))(key)
ways = {
    "a file": {"read": drawn.nbytes, "transfer": drawn.nbytes},
    "NumPy": {"read": 0, "transfer": drawn.nbytes},
    "the device": {"read": 0, "transfer": jax.random.key_data(key).nbytes},
}

# %% claims=["D4"]
for name, bytes_moved in ways.items():
    print(f"{name:11}", bytes_moved)
print("alike, mean and deviation:", [f"{abs(a.mean()):.1f} {a.std():.1f}" for a in (drawn, on_device)])

# %% [markdown]
# Eight bytes instead of 32 768, and the key is also what a resumed run needs. The next idea is to put the *data* on the device
# once. In the field it gained a factor of 1.001. Measure it here before you believe either: all else as before, batches uploaded or picked on
# the device.

# %%
all_x, all_y = jax.device_put((pixels, labels))
pick = jax.jit(lambda x, y, i: (jax.lax.dynamic_slice(x, (i, 0), (128, 64)), jax.lax.dynamic_slice(y, (i,), (128,))))


# %%
def epoch(get):
    params = begin()
    jax.block_until_ready(params)
    start = time.perf_counter()
    for i in range(0, 1792, 128):
        params, loss = step(params, *get(i))
    jax.block_until_ready(params)
    return 1e3 * (time.perf_counter() - start), float(loss)


# %%
arms = {
    "uploaded": lambda i: jax.device_put((pixels[i : i + 128], labels[i : i + 128])),
    "cached": lambda i: pick(all_x, all_y, i),
}
runs = {name: [] for name in arms}
for _ in range(6):
    for name, get in arms.items():
        runs[name].append(epoch(get))

# %% claims=["D4"]
best = {name: min(ms for ms, _ in got[1:]) for name, got in runs.items()}
print("same last loss:", bool(np.ptp([loss for got in runs.values() for _, loss in got]) < 1e-4))
guess_cached.reveal("over 2 times" if best["uploaded"] > 2 * best["cached"] else "under 2 times")

# %% tags=["nbval-ignore-output"] ignored="seconds differ from run to run"
print({name: f"{ms:.1f} ms an epoch" for name, ms in best.items()}, f"ratio {best['uploaded'] / best['cached']:.3f}")

# %% [markdown]
# Here a batch is 32 kB, and its way is short; the field's result holds. Picking is a program of its own, and may even cost more. It would
# not hold for video on a card behind a slow bus: divide
# bytes a step by the bus's bytes a second, and compare with the step. And a data set on the device is memory that a step
# cannot have.

# %% [markdown]
# ### Windows on demand
#
# A series of 20 000 values, windows of 256, a batch of 32. `sliding_window_view` shows all windows and costs nothing: it is a
# *view*. Until it meets JAX.

# %%
series = np.sin(np.arange(20_000) / 50).astype("float32")
view = np.lib.stride_tricks.sliding_window_view(series, 256)
print("shares the series' memory:", np.shares_memory(view, series))
factors = ["1 time", "32 times", "253 times"]
guess = predict("10-D5", "How many times the bytes of the series does jnp.asarray(view) take?", factors)


# %%
def materialised(windows, starts):
    return jnp.mean(windows[starts] ** 2)


def lazy(series, starts):
    window = lambda start: jax.lax.dynamic_slice(series, (start,), (256,))
    return jnp.mean(jax.vmap(window)(starts) ** 2)


# %% claims=["D5"]
starts = np.arange(0, 3200, 100, dtype="int32")
planned = {f.__name__: plan(jax.jit(f), data, starts) for f, data in ((materialised, view), (lazy, series))}
print({name: one.arguments for name, one in planned.items()}, "bytes of arguments")
print("the whole plan, over 100 times less:", planned["materialised"].total > 100 * planned["lazy"].total)
print("same:", np.allclose(jax.jit(materialised)(view, starts), jax.jit(lazy)(series, starts)))
guess.reveal(f"{jnp.asarray(view).nbytes / series.nbytes:.0f} times")

# %% [markdown]
# One trap comes with it. `dynamic_slice` never raises: a start too late is moved back until the window fits. So check starts on the
# host, where they are made.

# %% claims=["D5"]
last = jax.vmap(lambda start: jax.lax.dynamic_slice(series, (start,), (256,)))(np.array([19_744, 19_900]))
print("the window at 19,900 is the one at 19,744:", np.array_equal(last[0], last[1]))

# %% [markdown]
# ### A batch axis first
#
# An **episode** is a loop that cannot be cut short: each of 500 steps needs the one before. For a single one the device is idle most of
# the time, because a step is tiny. Other episodes do not depend on it.


# %%
@watch
@jax.jit
def episodes(states):
    """500 steps of every pendulum: (batch, 2) -> (batch, 2)."""

    def move(state, _):
        angle, speed = state[..., 0], state[..., 1]
        speed = speed - 0.02 * jnp.sin(angle)
        return jnp.stack([angle + 0.02 * speed, speed], -1), None

    return jax.lax.scan(move, states, length=500)[0]


# %%
def episodes_a_second(batch):
    states = jnp.linspace(0.1, 3, 2 * batch).reshape(batch, 2)
    took = []
    for _ in range(6):
        start = time.perf_counter()
        jax.block_until_ready(episodes(states))
        took.append(time.perf_counter() - start)
    return batch / min(took[1:])


# %%
factors = ["about as many", "about twice as many", "over 4 times as many"]
guess = predict("10-D6", "Episodes a second with 16 in one scan, against one at a time?", factors)

# %% claims=["D6"]
speed = {batch: episodes_a_second(batch) for batch in (1, 16, 256)}
gained = speed[16] / speed[1]
guess.reveal(factors[(gained > 1.5) + (gained > 4)])
states = jnp.linspace(0.1, 3, 8).reshape(4, 2)
alone = jnp.concatenate([episodes(state[None]) for state in states])
print("the same as one by one:", np.allclose(episodes(states), alone, atol=1e-5))
print("programs:", episodes.counts.compiles)

# %% tags=["nbval-ignore-output"] ignored="seconds differ from run to run"
for batch, rate in speed.items():
    print(f"{batch:5} episodes in one scan: {rate:12,.0f} a second")

# %% [markdown]
# Up to here the gain is nearly free. It levels off where the step fills the device, and may fall again beyond. Each size is a program of its own, so choose
# one. And every state of the batch is alive at once: the axis that fills the device fills its memory too.

# %% [markdown]
# ### Not on every step
#
# A diagnostic that is wanted every tenth step need not run on the nine others. `lax.cond` decides inside the compiled loop. Here a
# callback counts how often the dear branch really ran.

# %%
ran = []


def dear(x):
    jax.debug.callback(lambda: ran.append(1))
    return jnp.linalg.norm(jnp.outer(x, x))


# %%
def gated(x):
    def move(x, i):
        x = jnp.cos(x)
        return x, jax.lax.cond(i % 10 == 0, dear, lambda x: jnp.float32(jnp.nan), x)

    return jax.lax.scan(move, x, jnp.arange(100))


# %%
question = "100 steps under jit, gated to every tenth; then vmap over 3 such runs. The branch ran:"
guess = predict("10-D7", question, ["10, then 10", "10, then 100", "100, then 100"])

# %% claims=["D7"]
times_run = []
for run, x in ((jax.jit(gated), jnp.ones(4)), (jax.jit(jax.vmap(gated)), jnp.ones((3, 4)))):
    ran.clear()
    jax.block_until_ready(run(x))
    jax.effects_barrier()
    times_run.append(len(ran))
guess.reveal(f"{times_run[0]}, then {times_run[1]}")

# %% [markdown]
# The index is one for all three runs, so `cond` stays a branch, and it runs for all of them at once. It is another matter when the
# condition itself has a batch axis. Then both branches run and a `select` picks:


# %%
def primitives(jaxpr):
    """Every operation in a jaxpr and in what it calls, by name."""
    found = Counter()
    for equation in jaxpr.eqns:
        found[equation.primitive.name] += 1
        for inner in jax.tree.leaves(list(equation.params.values()), is_leaf=lambda v: hasattr(v, "eqns")):
            inner = getattr(inner, "jaxpr", inner)
            found += primitives(inner) if hasattr(inner, "eqns") else Counter()
    return found


# %% claims=["D7"]
def gate(x, i):
    return jax.lax.cond(i % 10 == 0, lambda x: jnp.linalg.norm(jnp.outer(x, x)), lambda x: jnp.float32(0), x)


xs, i = jnp.ones((3, 4)), jnp.arange(3)
for name, axes, index in (("one index for all", (0, None), 0), ("an index each", (0, 0), i)):
    found = primitives(jax.make_jaxpr(jax.vmap(gate, axes))(xs, index).jaxpr)
    print(f"{name:18} cond: {found['cond']}  select_n: {found['select_n']}")

# %% [markdown]
# So gate on something that the batch shares: the step. Next, work whose result is known before the loop. A frozen teacher makes
# targets from the same rows each epoch: compute them once, and the step has less to do. Count its matrix products.

# %%
teacher = begin(width=32)


def hidden_of(params, x):
    return jnp.tanh(jnp.tanh(x @ params["w"]) @ params["v"])


# %%
def imitate(params, x):  # the teacher runs in each step
    return jnp.mean((hidden_of(params, x) - hidden_of(teacher, x)) ** 2)


def imitate_stored(params, x, target):
    return jnp.mean((hidden_of(params, x) - target) ** 2)


# %% claims=["D7"]
student, x = begin(width=32), pixels[:16]
target = jax.jit(hidden_of)(teacher, x)
in_step = primitives(jax.make_jaxpr(jax.grad(imitate))(student, x).jaxpr)["dot_general"]
stored = primitives(jax.make_jaxpr(jax.grad(imitate_stored))(student, x, target).jaxpr)["dot_general"]
print("matrix products of a step, teacher inside:", in_step, " stored:", stored)

# %% [markdown]
# Some loops need not be loops. If a speed is known for all times, the position is its running sum: `cumsum` instead of a
# rollout. The state is **analytic**, and nothing has to wait for the step before.


# %%
def rolled_out(speeds):
    return jax.lax.scan(lambda at, speed: (at + 0.01 * speed,) * 2, jnp.float32(0), speeds)[1]


def summed(speeds):
    return 0.01 * jnp.cumsum(speeds)


# %% claims=["D7"]
speeds = np.random.default_rng(0).normal(size=4096).astype("float32")
for f in (rolled_out, summed):
    print(f"{f.__name__:11} sequential loops:", primitives(jax.make_jaxpr(f)(speeds).jaxpr)["scan"])
off = np.abs(jax.jit(rolled_out)(speeds) - jax.jit(summed)(speeds)).max()
print("equal within rounding:", bool(0 < off < 1e-4))

# %% [markdown]
# Last, the operation that crept in: it does not depend on the loop, and stands in it. In a step that Python calls it is paid for on each call.
# Inside a `scan`, the compiler may carry it out by itself. Ask the compiled text rather than a rule.


# %%
def crept(reference, x):
    body = lambda x, _: (jnp.cos(x) + jnp.sort(reference)[0], None)  # the sort does not need x
    return jax.lax.scan(body, x, length=50)[0]


def leans(reference, x):
    body = lambda x, _: (jnp.cos(x) + jnp.sort(reference + 0 * x[0])[0], None)
    return jax.lax.scan(body, x, length=50)[0]


# %%
def in_the_loop(f, operation, *args):
    """Whether the operation stands in the body of the compiled loop, on a CPU."""
    with jax.default_device(jax.devices("cpu")[0]):
        text = jax.jit(f).lower(*args).compile().as_text()
    assert f" {operation}(" in text
    body = re.search(r"body=%([\w.\-]+)", text)[1]
    return f" {operation}(" in text.split(f"%{body} (")[1].split("\n}")[0]


# %%
question = "crept sorts in the body of its scan. Is the sort in the loop of the CPU's program?"
guess = predict("10-D7b", question, [True, False])

# %% claims=["D7"]
reference, x = jnp.arange(9.0), jnp.ones(4)
guess.reveal(in_the_loop(crept, "sort", reference, x))
print("with 0 * x[0] added:", in_the_loop(leans, "sort", reference, x))

# %% [markdown]
# XLA moved it out: whoever does so by hand gains nothing here. It must not move what *seems* to depend on the carry: `0 * x` is NaN for
# an infinite `x`, and only you know that there is none.

# %% [markdown]
# ## Data larger than memory
#
# Twelve files, and room for three. Reading them one after the other would be easy, and wrong for training: here each file is of few
# writers, as these digits really are. A **pool** keeps some segments open, each with a cursor; a batch takes rows from every one, and a
# segment that is used up makes room for the next file.

# %%
segments = [folder / f"segment{i}.npy" for i in range(12)]
for i, path in enumerate(segments):
    np.save(path, np.arange(149 * i, 149 * (i + 1)))  # row numbers stand for rows

# %%
POOL_START = {"next": 0, "open": []}  # the next file; [file, cursor] of each open one


# %%
def opened(position, files, size):
    """The position once every free place has a segment: the next files, from their first row."""
    number, open_ = position["next"], list(position["open"])
    while len(open_) < size and number < files:
        open_.append([number, 0])
        number += 1
    return {"next": number, "open": open_}


# %%
class Pool:
    """Batches from segments, `size` of them in memory. `position` is a small dict of numbers."""

    def __init__(self, paths, position=POOL_START, size=3, seed=0):
        self.paths, self.position, self.size, self.seed, self.rows = paths, position, size, seed, {}

    def segment(self, i):
        if i not in self.rows:
            order = np.random.default_rng([self.seed, i]).permutation
            self.rows[i] = order(np.load(self.paths[i]))
        return self.rows[i]

    def batches(self, take=10):
        """Until the last row: up to `take` rows of each open segment at a time."""
        while (at := opened(self.position, len(self.paths), self.size))["open"]:
            batch = np.concatenate([self.segment(i)[cursor : cursor + take] for i, cursor in at["open"]])
            left = [[i, cursor + take] for i, cursor in at["open"] if cursor + take < len(self.rows[i])]
            self.position, self.rows = at | {"open": left}, {i: self.rows[i] for i, _ in left}
            yield batch


# %% claims=["D8"]
pool, drawn, held = Pool(segments), [], 0
for batch in pool.batches():
    drawn.append(batch)
    held = max(held, len(pool.rows))
rows = np.concatenate(drawn)
print("every row once:", sorted(rows) == list(range(12 * 149)), " segments held at most:", held)
print("files in the first batch:", len(set(drawn[0] // 149)))

# %% [markdown]
# A position is what a run needs to go on, and it is not one number: the next file and a cursor for each open one. The order inside a
# segment comes from a seed and the file's number, so it need not be stored.

# %% claims=["D8"]
first = Pool(segments)
some = [batch for _, batch in zip(range(20), first.batches(), strict=False)]
print("position:", json.dumps(first.position))
rest = list(Pool(segments, json.loads(json.dumps(first.position))).batches())
print("goes on where it stopped:", np.array_equal(np.concatenate(some + rest), rows))

# %% [markdown]
# `zip` asks the left side first, on purpose: with the pool on the left it would draw a batch that nobody gets. With a prefetching
# thread it is the same: **the position to store is that of the last batch used**, not of the last one read ahead. Send each batch's position
# along with it.

# %% claims=["D8"]
pool = Pool(segments)
stream = prefetch((batch, json.dumps(pool.position)) for batch in pool.batches())
for _ in range(5):
    batch, position = next(stream)
time.sleep(0.3)  # the thread reads ahead
print("the pool's own position is too far:", json.loads(position) != pool.position)
stream.close()
rest = list(Pool(segments, json.loads(position)).batches())
print("the one that came along:", np.array_equal(np.concatenate(drawn[:5] + rest), rows))

# %% [markdown]
# ### Compact on disk
#
# A smaller file is a shorter load. Three ways, each with an error to know before you use it. The digits are counts from 0 to 16, the
# latents are floats, and the table is one row for each of 20 subjects, repeated for 100 times.

# %%
latents = np.random.default_rng(1).normal(size=(1000, 64)).astype("float32")
table_row = np.random.default_rng(2).normal(size=(20, 1, 64)).astype("float32")
spread_out = np.broadcast_to(table_row, (20, 100, 64))


# %%
def stored_bytes(array):
    path = folder / "stored.npy"
    np.save(path, array)
    return path.stat().st_size - 128  # without the header


# %%
question = "np.save of a broadcast view, whose memory is 5,120 bytes: how many bytes of data?"
guess = predict("10-D10", question, [5_120, 512_000])

# %% claims=["D10"]
print("digits, float32:", stored_bytes(pixels), " uint8:", stored_bytes(np.uint8(16 * pixels)))
print("the same digits back:", np.array_equal(np.uint8(16 * pixels) / np.float32(16), pixels))
print("latents, float32:", stored_bytes(latents), " float16:", stored_bytes(latents.astype("float16")))
guess.reveal(stored_bytes(spread_out))
print("the row and the shape:", stored_bytes(table_row))

# %% [markdown]
# A view is written out in full. Store the row and broadcast inside `jit`. Does the program hold the whole table then? Ask for a product
# of elements, and for a matrix product.


# %%
def each_element(rows, x):
    return x * jnp.broadcast_to(rows, x.shape)


def matrix_product(rows, x):
    return x @ jnp.broadcast_to(rows, x.shape).swapaxes(1, 2)


# %% claims=["D10"]
for use in (each_element, matrix_product):
    whole = plan(jax.jit(use), table_row, spread_out).temporaries > 0.9 * spread_out.nbytes
    print(f"{use.__name__:14} the table in memory: {whole}")

# %% [markdown]
# Between elements it is fused away; a matrix product has its operands in memory (lesson 09). Upload the small form as well:
# `uint8` on the wire, divided on the device, is a quarter of the transfer. What does float16 cost?

# %% claims=["D10"]
large = np.array([1e-8, 70_000], "float32")
for name in ("float16", jnp.bfloat16.dtype):
    back = latents.astype(name).astype("float32")
    normal = np.abs(latents) > 1e-4
    worst = np.max(np.abs(back - latents)[normal] / np.abs(latents)[normal])
    with np.errstate(over="ignore"):
        ends = large.astype(name).astype("float32")
    print(
        f"{np.dtype(name).name:9} worst relative error 2^{np.log2(worst):.0f}, 1e-8 -> {ends[0]:.0e}, 70,000 -> {ends[1]:.0f}"
    )

# %% [markdown]
# Two bytes each: float16 has the digits, bfloat16 the range. The largest number of float16 is 65,504, so look at the largest value first. Store in 16
# bits, and compute in float32: then storing adds the error above, once, and computing adds none of its kind.

# %% [markdown]
# ## A run that can be stopped
#
# A long run ends early: a quota, a preemption, Ctrl-C. What has to be on disk? Everything that the next step needs. In JAX that is a list
# you can write down, because a step is a state transition (lesson 01): parameters, optimizer state, key, position in the data, and the
# settings of the launch.


# %%
def begin_run(settings):
    params = {"w": jnp.zeros((64, 10)), "b": jnp.zeros(10)}
    velocity = jax.tree.map(jnp.zeros_like, params)
    key = jax.random.key(settings["seed"])
    return {"params": params, "velocity": velocity, "key": key, "step": 0, "epoch": 0, "row": 0}


# %%
@jax.jit
def learn(params, velocity, key, x, y, rate):
    key, use = jax.random.split(key)
    kept = jax.random.bernoulli(use, 0.8, x.shape)

    def loss_of(params):
        scores = (x * kept) @ params["w"] + params["b"]
        return -jnp.mean(jax.nn.log_softmax(scores)[jnp.arange(len(y)), y])

    grads = jax.grad(loss_of)(params)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - rate * g, velocity, grads)
    return jax.tree.map(jnp.add, params, velocity), velocity, key


# %% [markdown]
# `advance` is one step of the run. The order of an epoch comes from the seed and its number, so two integers are the whole position.
# And it returns a **new** state: an interrupt finds the old one or the new one, and never half of each.


# %%
def advance(state, settings, data):
    epoch, row, batch = state["epoch"], state["row"], settings["batch"]
    order = np.random.default_rng([settings["seed"], epoch]).permutation(len(data.labels))
    rows = order[row : row + batch]
    names = "params", "velocity", "key"
    learned = learn(*(state[name] for name in names), data.pixels[rows], data.labels[rows], settings["rate"])
    row += batch
    if row + batch > len(data.labels):  # the short rest is dropped
        epoch, row = epoch + 1, 0
    return dict(zip(names, learned, strict=True)) | {"step": state["step"] + 1, "epoch": epoch, "row": row}


# %% [markdown]
# On disk it is a flat dict of arrays by path, the key as its data (lesson 02). `save` writes a file beside the old one, has it brought to the
# disk, and **renames** it: on one file system, a rename happens whole or not at all.


# %%
def save(path, state, settings):
    state = state | {"key": jax.random.key_data(state["key"])}
    leaves = jax.device_get(jax.tree_util.tree_leaves_with_path(state))
    arrays = {jax.tree_util.keystr(where): leaf for where, leaf in leaves}
    part = path.with_suffix(".part")
    with open(part, "wb") as file:
        np.savez(file, settings=json.dumps(settings), **arrays)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


# %%
def restore(path):
    """(state, settings) of the file, by path."""
    with np.load(path) as arrays:
        settings = json.loads(str(arrays["settings"]))
        like = begin_run(settings) | {"key": jax.random.key_data(jax.random.key(0))}
        leaf_of = lambda where, leaf: arrays[jax.tree_util.keystr(where)]
        state = jax.tree_util.tree_map_with_path(leaf_of, like)
    numbers = {name: int(state[name]) for name in ("step", "epoch", "row")}
    return state | numbers | {"key": jax.random.wrap_key_data(state["key"])}, settings


# %%
def run(path, settings=None, hook=lambda step: None):
    """Start, or go on where the file stops; its settings win. The final state is in the file, however it ends."""
    if path.exists():
        state, settings = restore(path)
    else:
        state = begin_run(settings)
    data = digits()
    try:
        while state["step"] < settings["steps"]:
            state = advance(state, settings, data)
            if state["step"] % settings["every"] == 0:
                save(path, state, settings)
            hook(state["step"])
    finally:
        save(path, state, settings)
    return state


# %%
jax.config.update("jax_default_device", jax.devices("cpu")[0])  # as in the processes below
SETTINGS = {"seed": 4, "rate": 0.1, "batch": 128, "steps": 24, "every": 5}
straight = run(folder / "straight.npz", SETTINGS)
print({name: straight[name] for name in ("step", "epoch", "row")})

# %% [markdown]
# Now the same in processes of their own, whose program is the source of the cells above and one line. One gets SIGINT after step 13:
# Python raises `KeyboardInterrupt`, and `finally` runs. The other gets SIGKILL in its save of step 15, after the writing and before the
# rename. It has no time for anything.

# %%
PROGRAM = """
import json, os, signal
from pathlib import Path
import jax, jax.numpy as jnp, numpy as np
from traceonce.data import digits
jax.config.update("jax_default_matmul_precision", "highest")
""" + "\n".join(inspect.getsource(part) for part in (begin_run, learn.__wrapped__, advance, save, restore, run))

HOOKS = {
    "SIGINT": "lambda step: step == 13 and os.kill(os.getpid(), signal.SIGINT)",
    "SIGKILL": "lambda step: step == 14 and setattr(os, 'replace', lambda *_: os.kill(os.getpid(), signal.SIGKILL))",
}


# %%
def in_a_process(path, hook):
    source = f"{PROGRAM}\nrun(Path({str(path)!r}), {SETTINGS}, {hook})"
    return run_capped(source, memory_mb=4000, environment={"JAX_PLATFORMS": "cpu"})


# %%
def same(one, other):
    leaves = [jax.tree.leaves(state | {"key": jax.random.key_data(state["key"])}) for state in (one, other)]
    return all(np.array_equal(a, b) for a, b in zip(*leaves, strict=True))


question = "SIGKILL in the save of step 15, saved every 5: at which step does the file stand?"
guess = predict("10-D9", question, ["none: it is broken", "10", "15"])

# %% claims=["D9"]
for name, hook in HOOKS.items():
    path = folder / f"{name}.npz"
    ending = in_a_process(path, hook)
    stands, part = restore(path)[0]["step"], path.with_suffix(".part").exists()
    print(f"{name:8} in a shell: {ending.shell_code}, the file stands at step {stands}, a part beside it: {part}")
    print("   the rest of the run, here, exactly as without an interrupt:", same(run(path), straight))
guess.reveal(str(stands))

# %% [markdown]
# Bit for bit, from another process, with the batches, masks and moments of the run that was never interrupted. SIGKILL costs the steps since
# the last save, and nothing else. SIGTERM, which a scheduler sends first, is a case of its own:

# %%
CATCH = """
import os, signal, sys
if {handler}:
    signal.signal(signal.SIGTERM, lambda *about: sys.exit(143))
try:
    os.kill(os.getpid(), signal.{name})
    print("still here")
finally:
    print("finally ran")
"""

# %%
guess = predict("10-D9b", "SIGTERM, no handler: does finally run?", [True, False])

# %% claims=["D9"]
for name, handler in (("SIGINT", False), ("SIGTERM", False), ("SIGTERM", True), ("SIGKILL", False)):
    ending = run_capped(CATCH.format(name=name, handler=handler), memory_mb=500)
    finally_ran = "finally ran" in ending.stdout
    print(f"{name:8} handler: {handler!s:5}  finally: {finally_ran!s:5}  in a shell: {ending.shell_code}")
    if name == "SIGTERM" and not handler:
        guess.reveal(finally_ran)

# %% [markdown]
# Python turns SIGINT into an exception, and SIGTERM into nothing: it ends the process on the spot. One line makes it `sys.exit`, which
# unwinds through `finally`.

# %% [markdown]
# ### Which ones to keep
#
# Keep all checkpoints and the disk is full; keep the last and a run that went wrong has nothing to go back to. Three tiers: *permanent*
# ones at a wide spacing, *milestones* such as the best so far, and a *rolling* few of the newest.


# %%
def kept(losses, spacing=100, best=1, newest=3):
    """Which steps stay, from {step: validation loss}. A NaN is never a milestone."""
    steps = sorted(losses)
    permanent = {step for step in steps if step % spacing == 0}
    finite = [step for step in steps if np.isfinite(losses[step])]
    milestones = set(sorted(finite, key=lambda step: losses[step])[:best])
    rolling = set(steps[::-1][:newest])  # steps[-newest:] is all of them for 0
    return permanent | milestones | rolling


# %% claims=["D9"]
on_disk = {}
for now in range(20, 361, 20):
    on_disk[now] = abs(now - 140) / 100 + 0.2 if now < 320 else np.nan  # best at 140, then it breaks
    on_disk = {at: on_disk[at] for at in kept(on_disk)}
print(sorted(on_disk))

# %% [markdown]
# 140 is the best and survives; the three newest are from after the accident, and useless. Delete only after the new file is in place, so that
# a kill in between leaves one too many. And count tiers by step number: as *text*, `"900"` sorts after `"1000"`.

# %% [markdown]
# ## Break it
#
# How much of this is needed? First the rename. Here is the direct way, `np.savez(path, ...)`, and the same kill in the middle of the
# write.

# %%
DIRECT = """
import io, os
import numpy as np

class Dies(io.FileIO):
    left = 3
    def write(self, data):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), 9)
        return super().write(data)

np.savez(Dies({path!r}, "w"), w=np.ones(5000), b=np.ones(5000))
"""


# %%
def loads(path):
    try:
        with np.load(path) as file:
            return f"loads, {len(file.files)} arrays"
    except (zipfile.BadZipFile, ValueError, EOFError, OSError) as error:
        return f"does not load: {type(error).__name__}"


# %%
question = "A good checkpoint is there; the next one is written over it and killed in between. Then:"
guess = predict("10-D9c", question, ["the old one loads", "nothing loads"])

# %% claims=["D9"]
direct = folder / "direct.npz"
np.savez(direct, w=np.ones(5000), b=np.ones(5000))
print("before:", loads(direct))
run_capped(DIRECT.format(path=str(direct)), memory_mb=1000)
print("after: ", loads(direct))
guess.reveal("the old one loads" if loads(direct).startswith("loads") else "nothing loads")

# %% [markdown]
# The direct way destroyed the old checkpoint before the new one existed; `save` left step 10 in place. Now the content. Somebody restores the weights, and leaves one
# thing out. Which omissions show in the loss?


# %%
def final_loss(state):
    scores = pixels @ np.asarray(state["params"]["w"]) + np.asarray(state["params"]["b"])
    return float(cross_entropy(scores, labels))


# %%
def resumed_without(*forgotten):
    """Restore at step 10, with some entries as they are at a start."""
    state, settings = restore(folder / "at10.npz")
    state = state | {name: begin_run(settings)[name] for name in forgotten}
    while state["step"] < settings["steps"]:
        state = advance(state, settings, digits())
    return state


# %%
save(folder / "at10.npz", run(folder / "ten.npz", SETTINGS | {"steps": 10}), SETTINGS)

# %%
question = "Key, velocity, position: how many omissions change the final loss by over 10 %?"
guess = predict("10-D9d", question, [0, 1, 2, 3])

# %% claims=["D9"]
omissions = {"nothing": (), "the key": ("key",), "the velocity": ("velocity",), "the position": ("epoch", "row")}
far = 0
for what, names in omissions.items():
    state = resumed_without(*names)
    change = abs(final_loss(state) / final_loss(straight) - 1)
    far += change > 0.1
    print(f"forgot {what:14} exact: {same(state, straight)!s:5}  loss within 10 %: {change <= 0.1}")
guess.reveal(far)

# %% [markdown]
# Key and position hardly show in the loss, and who has no second run to compare with will not see the velocity either. The run is
# another one: rows are seen twice and others not, masks repeat. So the test of a resume is *equality with the uninterrupted run*, and it takes seconds.

# %% [markdown]
# ## Repair it
#
# The launch settings are part of the run as well. Somebody restarts by hand and does not remember the batch size. The position is in
# rows, and its meaning depends on that.

# %% claims=["D9"]
path = folder / "relaunched.npz"
os.replace(folder / "at10.npz", path)
other = run(path, SETTINGS | {"batch": 64, "rate": 0.1})
print("the settings in the file win:", same(other, straight))

# %% [markdown]
# Silently ignoring what somebody typed is not kind either. Say what differs, and let them decide:


# %%
def check_settings(path, wanted):
    settings = restore(path)[1]
    changed = [
        f"{name}: {settings[name]} in the file, {wanted[name]} now" for name in wanted if wanted[name] != settings[name]
    ]
    if changed:
        raise ValueError("this run was launched otherwise (" + "; ".join(changed) + ")")


# %% claims=["D9"]
try:
    check_settings(path, SETTINGS | {"batch": 64})
except ValueError as error:
    print(error)

# %% [markdown]
# Last, count the waits of the whole loop. A state that goes to disk must come to the host; all else may stay.

# %% claims=["D2", "D9"]
with syncs() as seen:
    run(folder / "counted.npz", SETTINGS)
print("24 steps, saved 4 times and at the end: reads", seen.reads)
jax.config.update("jax_default_device", None)

# %%
shutil.rmtree(folder)

# %% [markdown]
# ## In the wild
#
# **An honest A/B.** The comparison of the report about `float(loss)`, in small: host work and device work of your machine, with and without
# the sync. The losses must agree; the gain is yours, and at most what the bound says.


# %%
def busy_host():
    return sum(i * i for i in range(60_000))


# %%
def compare(sync, n=12):
    params, losses = begin(), []
    start = time.perf_counter()
    for _ in range(n):
        params, loss = step(params, pixels[:128], labels[:128])
        losses.append(float(loss) if sync else loss)
        busy_host()
    return 1e3 * (time.perf_counter() - start) / n, [float(loss) for loss in losses]


# %%
results = {sync: [compare(sync) for _ in range(3)] for sync in (True, False)}
print("same losses:", len({tuple(losses) for runs in results.values() for _, losses in runs}) == 1)

# %% tags=["nbval-ignore-output"] ignored="seconds differ from run to run"
for sync, runs in results.items():
    print(f"sync each step: {sync!s:5}  {min(ms for ms, _ in runs):.1f} ms a step")

# %% [markdown]
# **Read a real loop** (10 minutes). Open
# [`train.py` of Flax's language model example](https://github.com/google/flax/blob/0740ef63c4eae05de58d80f85a05fc23bb8b3261/examples/lm1b/train.py)
# and go through `train_and_evaluate`.
#
# 1. On which lines does the training loop wait for the device?
# 2. Who loads, and how many batches may be ahead?
# 3. What is in a checkpoint? Which batches and which dropout masks does a resumed run see?
# 4. When is the last step saved, and what does Ctrl-C leave?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. On an ordinary step nowhere: metrics are appended and stay on the device. `get_metrics` fetches them once in `eval_every_steps`.
# 2. The threads of `tf.data`, which call no JAX; the pipeline decides how many are ahead.
# 3. Parameters, optimizer state, step. Not the data's position: a resumed run reads from the start of its shuffle. The masks go on
#    exactly, because `train_step` folds the step into a key that comes from the seed.
# 4. `is_last_step` saves it. There is no `finally`: Ctrl-C costs all since the last save.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work, and you have run it above.
#
# | report | what was seen | section |
# |---|---|---|
# | [jax#390](https://github.com/jax-ml/jax/issues/390) | plotting element by element is slow | Lines that wait |
# | [jax#16602](https://github.com/jax-ml/jax/issues/16602) | the transfer guard sees no read on a CPU | Lines that wait |
# | [LANfactory#120](https://github.com/lnccbrown/LANfactory/pull/120) | a sync on each step cost 4 %; the loader cost the rest | What a sync costs |

# %% [markdown]
# ## Recap
#
# - The slowest lane sets the pace. Draw the lanes first.
# - A sync costs at most the shorter of host and device. Count syncs; stack and fetch once.
# - A thread: NumPy alone, a bounded queue, errors through the queue.
# - Measure before you cache, and shorten what is longest: lazy windows, a batch axis, gates, fewer bytes.
# - A checkpoint: parameters, optimizer, key, position, settings; renamed into place; equal to the uninterrupted run.

# %% [markdown]
# ## Lab
#
# [Lab 10](../../labs/lab10_feeding_the_device.ipynb) hands you a loop that starves: it waits on each step, its thread swallows errors, and a
# stopped run begins anew. You repair it under counted syncs and make it resume exactly. About 40 minutes.
