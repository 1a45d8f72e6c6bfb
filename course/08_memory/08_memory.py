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
# # 08 · Out of memory, on purpose
#
# Memory runs out in three places, and processes die of it in five ways. After this lesson you have seen each death once,
# in a child process that was meant to die, and can tell from what is left which one it was.
#
# About 60 minutes. The second half, [08b](08b_device_memory.ipynb), is about what a compiled program needs.

# %% [markdown]
# ## Question
#
# An evaluation ran over night. In the morning the log stops in the middle of a line. There is no traceback, and the shell
# says 137. Here is the job in small: six steps, and the sixth keeps every mask that it computes.

# %%
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from traceonce import predict
from traceonce.sandbox import run_capped
from traceonce.show import chart, child_chart

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

# %%
JOB = """
import atexit, faulthandler, time
faulthandler.enable()
atexit.register(print, "closed the log file")
for step in range(1, 6):
    print(f"step {step}: loss {4 / step:.2f}")
print("step 6: evaluating ...", end=" ", flush=FLUSH)
kept = []
try:
    while True:
        kept.append(b"x" * 8_294_400)
        time.sleep(0.03)
except BaseException as error:
    print("caught", type(error).__name__)
"""

# %% [markdown]
# The child runs under a cap: this notebook watches its resident memory (**RSS**) 50 times a second, and above 300 MB sends it
# SIGKILL, the signal that the kernel sends when the machine is full. The child is guarded in every way that Python has:
# `faulthandler`, `atexit`, a bare `except`.

# %%
question = "What is in the child's standard error when it is dead?"
remains = ["nothing", "MemoryError", "what faulthandler wrote"]
guess = predict("08-O2", question, remains)

# %% [markdown]
# ## Before you run
#
# Commit yourself also to the other end of the pipe. The child has printed six lines, as far as its code goes. Standard output
# is a file, as it is under a job scheduler. What is in that file?

# %%
question = "print() was called six times, without flush. How many lines are in the log?"
guess_log = predict("08-O2b", question, [6, 5, 0])

# %% [markdown]
# ## Five ways to die
#
# Run it, and watch it climb.

# %% claims=["O2"]
endings = {}
CPU = {"JAX_PLATFORMS": "cpu"}  # children leave a GPU to this notebook


def run(name, source, memory_mb=300, on_sample=None, **settings):
    environment = CPU | settings.pop("environment", {})
    endings[name] = run_capped(source, memory_mb=memory_mb, on_sample=on_sample, environment=environment, **settings)
    return endings[name]


drawn = child_chart(300, "The job on its way to its cap", numbers=False)
unbuffered = {"PYTHONUNBUFFERED": "1"}
ending = run("killed", JOB.replace("FLUSH", "True"), on_sample=drawn, environment=unbuffered)
drawn.close(ending)
print(ending.stdout)
guess.reveal(remains[0] if not ending.stderr else remains[1 if "MemoryError" in ending.stderr else 2])

# %% [markdown]
# Nothing. SIGKILL cannot be caught, so no handler runs: no `except`, no `finally`, no `atexit`, no `faulthandler`. The log stops
# where it stood. What remains is with the parent: the exit code, and whoever watched.

# %% claims=["O2"]
print("returncode:", ending.returncode, " in a shell:", ending.shell_code)
print("kind:", ending.kind, " over its cap:", ending.peak_mb > 300)
print("this notebook still computes:", float(jnp.ones(3).sum()))

# %% [markdown]
# A shell writes 128 + 9 = 137 and Python −9: one death, two spellings. Now the same job as most people start it, without
# flushing.

# %% claims=["O2"]
ending = run("killed, buffered", JOB.replace("FLUSH", "False"), environment={"PYTHONUNBUFFERED": ""})
guess_log.reveal(len(ending.stdout.splitlines()))

# %% [markdown]
# Into a file, Python writes blocks of 8 KiB. What is in the buffer dies with the process, so **the last line of a log is not the
# last thing that happened**. Set `PYTHONUNBUFFERED=1` where jobs are started, or flush the lines that you would want to have.

# %% [markdown]
# ### Refused instead of killed
#
# A limit on the address space (`ulimit -v`) works otherwise: the allocation is *refused*, and whoever asked has to deal with
# it. Python raises. Native code may not be able to: it may abort.

# %% claims=["O2"]
ASKS = "kept = []\nwhile True:\n    kept.append(bytearray(8_294_400))"
STARTS_XLA = "import jax.numpy as jnp\njnp.ones(3)"
if sys.platform == "linux":
    run("refused, Python", ASKS, memory_mb=100, how="refuse")
    run("refused, threads", STARTS_XLA, memory_mb=10, how="refuse", imports=["jax", "jax.numpy"])
    for name in ("refused, Python", "refused, threads"):
        ending = endings[name]
        print(f"{name:17} {ending.kind:13} {ending.shell_code:4}  stderr: {bool(ending.stderr)}")

# %% [markdown]
# The second had room for 10 MB: XLA could not start its threads, and there is nobody to raise to. **134** is 128 + 6, SIGABRT.
# It is talkative where SIGKILL is silent: the reason is in standard error.

# %% [markdown]
# ### XLA's own word
#
# The fifth death is polite. XLA asks its allocator, gets nothing, and raises. Here it is in this kernel, which survives it: an
# array of 557 TB, more than a process has addresses for.

# %%
impossible = (2**26, 1080, 1920)
try:
    jnp.ones(impossible).block_until_ready()
except (RuntimeError, ValueError) as error:
    text, kind = str(error), type(error).__name__

# %%
question = "evaluate() catches it: raise RuntimeError('evaluation failed') from error. What is str(error)?"
guess = predict("08-O5", question, ["RESOURCE_EXHAUSTED: ...", "evaluation failed"])

# %% claims=["O5"]
print("raised:", kind, " text begins:", text.partition(":")[0])


def evaluate(hide):
    try:
        return jnp.ones(impossible).block_until_ready()
    except (RuntimeError, ValueError) as error:
        raise RuntimeError("evaluation failed") from (None if hide else error)


def caught(call, *args):
    try:
        call(*args)
    except RuntimeError as error:
        return error


error = caught(evaluate, False)
guess.reveal(str(error))

# %% [markdown]
# Frameworks wrap errors, and logs keep last lines. Match the *text* `RESOURCE_EXHAUSTED`: the class has been
# `XlaRuntimeError`, is `JaxRuntimeError`, and may be `ValueError`. And look behind the wrapper:


# %% claims=["O5"]
def causes(error):
    """The exception, then what it was raised from, and what it was raised during."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def is_exhausted(error):
    return any("RESOURCE_EXHAUSTED" in str(each) for each in causes(error))


print([type(each).__name__ for each in causes(error)], "exhausted:", is_exhausted(error))

# %%
question = "raise RuntimeError('evaluation failed') from None: the cause is None. Is it lost?"
guess = predict("08-O5b", question, ["lost", "still there"])

# %% claims=["O5"]
error = caught(evaluate, True)
print("__cause__:", error.__cause__)
guess.reveal("still there" if is_exhausted(error) else "lost")
del error

# %% [markdown]
# `from None` only hides it in the printed traceback; `__context__` keeps it. One disguise has no chain at all: a *worker* is
# killed, and the parent gets an exception of its own. PyTorch users know it as "DataLoader worker is killed by signal".

# %% claims=["O2", "O5"]
POOL = """
import multiprocessing, os, signal
from concurrent.futures import ProcessPoolExecutor
def load(i):
    if i == 3:
        os.kill(os.getpid(), signal.SIGKILL)  # stands for the kernel's killer
    return i
if __name__ == "__main__":
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        list(pool.map(load, range(8)))
"""
ending = run("a worker killed", POOL)
print(ending.shell_code, [each.type_name for each in ending.raised])
run("exhausted", "import jax.numpy as jnp\njnp.ones((2**26, 1080, 1920))", memory_mb=900)
print(endings["exhausted"].shell_code, endings["exhausted"].kind)

# %% [markdown]
# ## Reading the body
#
# The exit code says *SIGKILL* and not *who*. Three killers send it, and each leaves a note in another place: `dmesg` or
# `journalctl -k` for the kernel, the journal for `systemd-oomd`. The samples beside this notebook are written in these
# formats, shortened; the machines are made up. First the ordinary one.

# %%
from pathlib import Path

samples = {path.stem: path.read_text() for path in sorted(Path("samples").glob("*.txt"))}
print(samples["machine"])

# %% [markdown]
# Read it from below. The last line names the victim, `anon-rss` is what it really had, in kB. `total-vm` is address space, mostly
# never touched: ignore it. The line above says `CONSTRAINT_NONE`, `global_oom`: the machine was full. The table counts in
# **pages** of 4 kB.

# %%
print(samples["container"])

# %%
question = "container.txt: which memory was full?"
choices = ["the machine's", "the container's", "that of process 312"]
guess = predict("08-O2c", question, choices)

# %% claims=["O2"]
import re


def tasks_gb(text):
    """Resident memory by process, out of the table of tasks."""
    rows = re.findall(r"\[ *(\d+)\] +\d+ +\d+ +\d+ +(\d+)", text)
    return {int(pid): int(pages) * 4096 / 1e9 for pid, pages in rows}


constraint = re.search(r"constraint=(\w+)", samples["container"])[1]
limit = int(re.search(r"limit (\d+)kB", samples["container"])[1]) * 1024 / 1e9
by_process = tasks_gb(samples["container"])
print(constraint, f"limit {limit:.1f} GB, all tasks {sum(by_process.values()):.1f} GB")
print("the victim had", round(by_process[312], 1), "GB; processes:", len(by_process))
guess.reveal(choices[1] if constraint == "CONSTRAINT_MEMCG" else choices[0])

# %% [markdown]
# The container's **cgroup** had a limit of 8.6 GB, and five processes filled it together. The victim is merely the largest, by a
# hair. The host may have had 100 GB free, and `free` inside the container shows the *host*. The third note:

# %%
print(samples["pressure"])

# %%
question = "train.scope was killed. What does the note say was exhausted?"
choices = ["memory", "swap", "neither: it waited too long"]
guess = predict("08-O2d", question, choices)

# %% claims=["O2"]
share, allowed, span = re.search(r"being ([\d.]+)% > ([\d.]+)% for > (\d+)s", samples["pressure"]).groups()
print(f"stalled {share} % of the time, allowed {allowed} % for {span} s")
guess.reveal(choices[2 if "memory pressure" in samples["pressure"] else 0])

# %% [markdown]
# **Pressure** is time, not bytes: the share of time in which processes waited for memory (PSI). A machine that swaps can stall
# with gigabytes "available", and a daemon then kills everything in the scope: nine processes, and no line in `dmesg`. Such kills
# [have been reported](https://github.com/systemd/systemd/issues/23606) at 6 GB in use of 32.

# %% [markdown]
# Both kinds can be read *before* anybody dies, in `/proc/pressure/memory` and in the cgroup's `memory.events`. "some" is when at
# least one task waited, "full" when all did.


# %% claims=["O2"]
def psi(text):
    """Kind -> seconds averaged over -> per cent of the time."""
    lines = [line.split() for line in text.splitlines()]
    return {kind: {int(s[3:]): float(v) for s, v in (f.split("=") for f in fields[:3])} for kind, *fields in lines}


stalled = psi(samples["proc_pressure_memory"])
events = dict(line.split() for line in samples["memory_events"].splitlines())
print("full, last 10 s:", stalled["full"][10], " rising:", stalled["full"][10] > stalled["full"][300])
print("killed in this cgroup so far:", events["oom_kill"], " times at the limit:", events["max"])

# %% tags=["nbval-ignore-output"] ignored="this machine's own pressure changes from second to second"
here = Path("/proc/pressure/memory")
print(here.read_text() if here.exists() else "this kernel does not tell")

# %% [markdown]
# So who did it? One function, from the notes alone:


# %% claims=["O2"]
def killer(text):
    if "memory pressure" in text:
        return "a pressure daemon: too much waiting"
    if "Memory cgroup out of memory" in text:
        return "the kernel, for a cgroup at its limit"
    if "Out of memory: Killed" in text:
        return "the kernel, for a full machine"
    return "no killer's note: a scheduler, a colleague, or a watchdog like ours"


for name in ("machine", "container", "pressure"):
    print(f"{name:10} {killer(samples[name])}")
print(f"{'our child':10} {killer(endings['killed'].stderr)}")

# %% [markdown]
# ### Jobs that outlive their launcher
#
# What ends one process does not end its children. A launcher starts a worker that holds 60 MB, and ends. Does the worker?

# %%
LAUNCHER = """
import subprocess, sys
work = "import time; held = b'x' * 60_000_000; time.sleep(60)"
quiet = subprocess.DEVNULL
worker = subprocess.Popen([sys.executable, "-c", work], stdout=quiet, stderr=quiet)
print(worker.pid, flush=True)
"""

# %%
question = "The launcher has ended. What has its worker?"
guess = predict("08-O16", question, ["ended too", "60 MB, still"])

# %% claims=["O16"]
import os
import signal
import subprocess

import psutil

start = [sys.executable, "-c", LAUNCHER]
launched = subprocess.run(start, capture_output=True, text=True, check=True, start_new_session=True)
worker = psutil.Process(int(launched.stdout))
for _ in range(100):
    if worker.memory_info().rss > 60e6:
        break
    time.sleep(0.05)
holds = worker.memory_info().rss > 60e6
guess.reveal("60 MB, still" if holds else "ended too")
os.killpg(os.getpgid(worker.pid), signal.SIGKILL)


# %% claims=["O16"]
def ended(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE  # dead, and nobody has asked for it yet
    except psutil.NoSuchProcess:
        return True


while not ended(worker):
    time.sleep(0.05)
print("gone after a kill of its process group:", ended(worker))

# %% [markdown]
# On a GPU this is the job that `nvidia-smi` still lists after your notebook is gone, and whose memory you miss. Start a launcher in a
# **process group** of its own (`start_new_session=True`) and kill the *group*, as here, or let workers end with a pipe that their
# launcher holds open.

# %% [markdown]
# ## The same masks, three ways
#
# What had the job kept? A full-HD mask of float32 scores, one for each frame.


# %%
def scores(frame):
    """A made-up segmentation: two soft blobs that drift."""
    rows, cols = np.arange(1080, dtype="float32")[:, None], np.arange(1920, dtype="float32")[None]
    one = ((rows - 500 - 3 * frame) / 220) ** 2 + ((cols - 700 - 8 * frame) / 330) ** 2
    other = ((rows - 300) / 120) ** 2 + ((cols - 1500 + 5 * frame) / 90) ** 2
    return np.exp(-0.7 * np.minimum(one, other))


print(f"{scores(0).nbytes:,} bytes; a minute of 30 frames a second: {scores(0).nbytes * 1800 / 1e9:.1f} GB")

# %% [markdown]
# What is wanted of it is often one bit for each pixel: above the threshold or not. `np.packbits` puts eight of them into a byte;
# `zlib` then removes what repeats, without loss. Practitioners report a factor of 1000 for the two together.


# %%
import zlib


def pack(mask):
    return zlib.compress(np.packbits(mask > 0.5).tobytes())


def unpack(packed, shape=(1080, 1920)):
    return np.unpackbits(np.frombuffer(zlib.decompress(packed), np.uint8), count=shape[0] * shape[1]).reshape(shape)


# %%
question = "packbits alone gives 32 (float32 to a bit). How much do both give on these blobs?"
factors = ["under 100", "100 to 1000", "over 1000"]
guess = predict("08-O3", question, factors)

# %% claims=["O3"]
mask = scores(0)
packed = pack(mask)
ratio = mask.nbytes / len(packed)
print("the bits come back:", np.array_equal(unpack(packed), mask > 0.5))
guess.reveal(factors[(ratio > 100) + (ratio > 1000)])

# %%
question = "And on a mask of noise, each pixel by itself?"
guess = predict("08-O3b", question, ["under 40", "100 to 1000", "over 1000"])

# %% claims=["O3"]
noise = np.random.default_rng(0).random((1080, 1920), dtype="float32")
speckled = np.where(noise > 0.98, 1 - mask, mask)
for name, m in {"blobs": mask, "2 % of the pixels wrong": speckled, "noise": noise}.items():
    factor = m.nbytes / len(pack(m))
    print(f"{name:24} {'over 1000' if factor > 1000 else 'over 50' if factor > 50 else 'under 40'}")
guess.reveal("under 40" if noise.nbytes / len(pack(noise)) < 40 else "100 to 1000")

# %% [markdown]
# So the 1000 holds for smooth regions, and falls to the 32 of the bits where nothing repeats: a network early in training makes
# speckled masks, and the evaluation that fitted yesterday does not fit today. The factor is a property of the *data*.

# %% [markdown]
# Now three children, 30 frames each. One keeps float32, one keeps packed masks, one keeps only what the question needs: the area
# of each frame.

# %%
import inspect

STORES = {
    "accumulate": "store = lambda mask: mask",
    "pack": "store = pack",
    "stream": "store = lambda mask: int((mask > 0.5).sum())",
}
HEAD = "import zlib, numpy as np\n" + inspect.getsource(scores) + inspect.getsource(pack)
LOOP = "\nkept = [store(scores(frame)) for frame in range(30)]\nprint(len(kept))"
for name, store in STORES.items():
    run(name, HEAD + store + LOOP, memory_mb=230)

# %% claims=["O3"]
from traceonce.show.records import Limit, Line, Timeline

points = {name: tuple((s.seconds, s.rss_mb * 1e6) for s in endings[name].samples) for name in STORES}
lines = tuple(Line(name, held) for name, held in points.items())
chart(Timeline("Thirty full-HD masks", lines, Limit("the cap", 230e6)), numbers=False)
for name in STORES:
    ending = endings[name]
    print(f"{name:11} {ending.kind:9} under half the cap: {ending.peak_mb < 115}")

# %% [markdown]
# Accumulating dies, at whatever length fills the machine: it is a matter of time, and so a matter of the data. Streaming is flat.
# Packing is nearly flat and keeps the choice to look again. Then decode **lazily**, a frame when it is asked for:


# %% claims=["O3"]
class Masks:
    """Packed masks that look like a list of arrays."""

    def __init__(self, frames):
        self.packed = [pack(scores(frame)) for frame in range(frames)]

    def __getitem__(self, frame):
        return unpack(self.packed[frame])


masks = Masks(8)
areas = [int(masks[frame].sum()) for frame in range(8)]
print("same areas:", areas == [int((scores(frame) > 0.5).sum()) for frame in range(8)])
print("all eight, packed, under a hundredth of one:", sum(map(len, masks.packed)) < mask.nbytes / 100)

# %% [markdown]
# ### A cache is a number
#
# Decoding twice is a waste, so somebody puts `functools.lru_cache` on it. Its bound counts **entries**, 128 by default. What does
# it weigh in a data loader with four workers, if an entry is a decoded float32 mask?

# %%
question = "128 entries of 8.3 MB, 4 workers: how many GB?"
guess = predict("08-O4", question, [1.1, 2.1, 4.2])

# %% claims=["O4"]
from functools import lru_cache

loader = lru_cache(scores)
entries = loader.cache_parameters()["maxsize"]
print(entries, "entries")
guess.reveal(round(entries * mask.nbytes * 4 / 1e9, 1))

# %% [markdown]
# Each worker is a process and has a cache of its own; nothing is shared. Is the product true? Measured: three workers that cache
# four masks each say by how much their RSS has grown.

# %%
WORKERS = """
import multiprocessing, psutil
from functools import lru_cache
cached = lru_cache(maxsize=4)(scores)
def work(grown):
    scores(0)  # what a single mask takes on its way is there before
    before = psutil.Process().memory_info().rss
    for frame in range(9):
        cached(frame)
    grown.put(psutil.Process().memory_info().rss - before)
if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")
    grown = fork.Queue()
    for _ in range(3):
        fork.Process(target=work, args=(grown,)).start()
    print(sum(grown.get() for _ in range(3)))
"""

# %% claims=["O4"]
RETURNED = {"MALLOC_MMAP_THRESHOLD_": "65536"}  # freed arrays go back to the system at once, as RSS should show
ending = run("caches", HEAD + WORKERS, memory_mb=900, environment=RETURNED)
measured, product = int(ending.stdout), 4 * mask.nbytes * 3
print(f"entries x size x workers: {product / 1e6:.0f} MB")
print("measured within a quarter of it:", abs(measured / product - 1) < 0.25, " after 9 frames each")

# %% [markdown]
# The formula holds: **entries × size × workers**. Turn it round: choose the bytes, and derive the entries. Better still, bound the
# bytes themselves.


# %%
from collections import OrderedDict


class Bounded:
    """The most recent results, up to a number of bytes."""

    def __init__(self, load, most):
        self.load, self.most, self.kept = load, most, OrderedDict()

    def __call__(self, key):
        value = self.kept.pop(key) if key in self.kept else self.load(key)
        self.kept[key] = value
        while sum(each.nbytes for each in self.kept.values()) > self.most:
            self.kept.popitem(last=False)
        return value


# %% claims=["O4"]
cache = Bounded(scores, most=40e6)
for frame in (0, 1, 2, 0, 3, 4, 5):
    cache(frame)
print("kept:", list(cache.kept), " MB:", round(sum(each.nbytes for each in cache.kept.values()) / 1e6, 1))

# %% [markdown]
# ### Size by the spike
#
# How much memory does a job need? Not what it shows in `top` while it runs. This one reads a checkpoint and makes an array of it.
# Afterwards it holds 80 MB.

# %%
SPIKE = """
import json, resource, sys
from pathlib import Path
import numpy as np
def now_and_highest():
    status = Path("/proc/self/status")
    if not status.exists():  # macOS
        return [0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6]
    fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return [int(fields[name].split()[0]) * 1024 / 1e6 for name in ("VmRSS", "VmHWM")]
start = now_and_highest()[0]
raw = b"x" * 80_000_000                      # the file, read
weights = np.frombuffer(raw, np.uint8) * np.uint8(1)   # the array made of it
del raw
print(json.dumps([start, *now_and_highest()]))
"""

# %%
start, steady, highest = json.loads(run("the spike", SPIKE, memory_mb=600).stdout)
question = "The job holds 80 MB. A cap at its steady size and half as much again: what happens?"
guess = predict("08-O16b", question, ["finished", "over_cap"])

# %% claims=["O16"]
print("to the nearest 10 MB: steady", round(steady - start, -1), " highest", round(highest - start, -1))
SLOWLY = SPIKE.replace("del raw", "import time; time.sleep(0.2); del raw")
cap = (steady + 40) * 1e6 / 2**20
run("steady and a half", SLOWLY, memory_mb=cap)
print("cap above the spike:", run("above the spike", SLOWLY, memory_mb=cap + 80).kind)
guess.reveal(endings["steady and a half"].kind)

# %% [markdown]
# Twice the steady size, for a fraction of a second. A monitor that samples once in ten seconds never sees it, and the killer does
# not wait. Ask for the **high-water mark** (`VmHWM`, `MaxRSS` of a scheduler), and read files in a way that needs no second copy
# (`np.load(..., mmap_mode="r")`).

# %% [markdown]
# ## Sums instead of rows
#
# Some statistics seem to need all rows at once. Least squares does not: it needs $X^\top X$ and $X^\top y$, and both are sums over
# rows. On the four rows of lesson 01, in blocks of three, the last one padded with zeros, which add nothing.


# %%
@jax.jit
def add_block(sums, x, y):
    return {"xx": sums["xx"] + x.T @ x, "xy": sums["xy"] + x.T @ y}


def streamed(blocks, columns, rows_in_block):
    sums = {"xx": jnp.zeros((columns, columns)), "xy": jnp.zeros(columns)}
    for x, y in blocks:
        short = rows_in_block - len(x)
        sums = add_block(sums, np.pad(x, ((0, short), (0, 0))), np.pad(y, (0, short)))
    return sums


# %%
x4 = np.array([[1, 0, 1], [0, 1, 1], [1, 1, 1], [2, 1, 1]], "float32")  # the last column is the bias
y4 = np.array([2, -1, 1, 3], "float32")
sums = streamed([(x4[:3], y4[:3]), (x4[3:], y4[3:])], 3, 3)
print(sums["xx"].tolist(), sums["xy"].tolist())
print("w and b:", [round(v, 4) + 0.0 for v in jnp.linalg.solve(sums["xx"], sums["xy"]).tolist()])

# %% [markdown]
# Small integers add exactly. Now 40 000 rows of 32 random columns, made block by block, as if they came from disk: the rows would
# be 5 MB, the sums are 4 kB whatever the number of rows.


# %%
def block(i, rows=1024, total=40_000):
    rng = np.random.default_rng(i)
    x = rng.normal(size=(min(rows, total - i * rows), 32)).astype("float32")
    return x, x @ np.linspace(-1, 1, 32, dtype="float32") + rng.normal(size=len(x)).astype("float32")


x, y = map(np.concatenate, zip(*map(block, range(40)), strict=True))
at_once = {"xx": jnp.asarray(x).T @ x, "xy": jnp.asarray(x).T @ y}

# %%
question = "Forty blocks against one shot: are the sums equal?"
equal = ["bit by bit", "to 6 digits", "to 2 digits"]
guess = predict("08-O8", question, equal)

# %% claims=["O8"]
sums = streamed(map(block, range(40)), 32, 1024)
apart = float(jnp.abs(sums["xx"] - at_once["xx"]).max() / jnp.abs(at_once["xx"]).max())
guess.reveal(equal[(apart > 0) + (apart > 1e-5)])
ridge = lambda sums: jnp.linalg.solve(sums["xx"] + 1.0 * jnp.eye(32), sums["xy"])
print("weights within 1e-5:", bool(jnp.allclose(ridge(sums), ridge(at_once), atol=1e-5)))
print("bytes kept:", sum(s.nbytes for s in sums.values()), " bytes of all rows:", x.nbytes + y.nbytes)

# %% [markdown]
# People say "value-identical". To a tolerance, yes; bit for bit only where the sums are exact. Addition in floating point depends on
# its order, and blocks change the order.

# %% [markdown]
# ### Standardise without all rows
#
# Mean and variance, then. The formula that everybody remembers is the mean of the squares minus the square of the mean: two sums.
# Here is a column that is 10 000 ± 1, in float32.

# %%
column = (10_000 + np.random.default_rng(1).normal(size=40_000)).astype("float32")
parts = jnp.asarray(column.reshape(40, 1000))
question = "Variance by two running sums in float32. The true one is near 1. What comes out?"
close = ["the true one, to two digits", "a wrong number"]
guess = predict("08-O8b", question, close)

# %% claims=["O8"]
totals = jax.lax.scan(
    lambda c, v: ((c[0] + v.sum(), c[1] + (v * v).sum()), None), (jnp.zeros(()), jnp.zeros(())), parts
)[0]
naive = float(totals[1] / 40_000 - (totals[0] / 40_000) ** 2)
true = float(column.astype("float64").var())
guess.reveal(close[abs(naive / true - 1) > 0.01])

# %% [markdown]
# Two numbers near a hundred million are subtracted, where the neighbours of a float32 are 8 apart. **Welford's** form keeps the mean and the sum of
# squared distances *from the mean*, and joins two blocks by the formula of Chan. Nothing large is ever subtracted.


# %% claims=["O8"]
def join(a, values):
    n, mean, m2 = a
    k, there = values.size, values.mean()
    gap = there - mean
    return n + k, mean + gap * k / (n + k), m2 + ((values - there) ** 2).sum() + gap**2 * n * k / (n + k)


zeros = (jnp.zeros(()), jnp.zeros(()), jnp.zeros(()))
n, mean, m2 = jax.lax.scan(lambda a, v: (join(a, v), None), zeros, parts)[0]
print(f"mean {mean:.1f}, variance within 0.1 % of the true one: {abs(float(m2 / n) / true - 1) < 1e-3}")
standard = (column - float(mean)) / float(jnp.sqrt(m2 / n))
print("standardised: mean 0, deviation 1:", abs(standard.mean()) < 0.01, abs(standard.std() - 1) < 0.01)

# %% [markdown]
# Such a running triple fits into a `scan`; in [08b](08b_device_memory.ipynb) it takes the place of all the results.

# %% [markdown]
# ## What stays alive
#
# The last suspect is the notebook. `live_bytes()` counts the bytes of all live JAX arrays, each **buffer** once. The sum of `nbytes`
# over `jax.live_arrays()` may count one twice ([2026](https://github.com/vllm-project/tpu-inference/pull/1470)): two array objects can
# share a buffer, and on JAX 0.11 printing one makes such a twin, unless it is too large to be printed in full.

# %%
import gc

from traceonce.observe import largest, let_go, live_bytes

let_go()
at_start = live_bytes().bytes


def live_mb():
    gc.collect()
    return round((live_bytes().bytes - at_start) / 1e6)


# %% [markdown]
# Forty megabytes, shown as the last line of a cell, and deleted in the next.

# %%
shown = jnp.arange(10_000_000.0)
shown

# %%
question = "After `del shown`: how many MB are live?"
guess = predict("08-K1", question, [0, 40, 80])

# %%
del shown
guess.reveal(live_mb())
held = largest(1)[0]
outputs = {re.sub(r"\d+", "n", holder.path) for holder in held.holders if holder.where == "output"}
print(held.bytes, "bytes, kept as:", sorted(outputs))

# %% [markdown]
# `Out[n]` has it, and `_`, and a hidden copy that survives `%reset out`
# ([2021](https://github.com/ipython/ipython/issues/12879)). End such a cell with `;`, show a summary, or let go:

# %%
print("freed MB:", round(let_go().freed / 1e6), " live:", live_mb())
rebound = []
for _ in range(4):
    a = jnp.ones(1000)
    rebound.append(live_bytes().bytes)
print("a rebound name keeps no old buffer:", len(set(rebound[1:])) == 1)

# %% [markdown]
# (That loop did leak, one buffer a turn, [in 2022](https://github.com/jax-ml/jax/issues/10007).) Next: a function fails, and its
# local array is nobody's any more.


# %% tags=["raises-exception"]
def features(batch):
    big = jnp.ones((batch, 1000, 1000))
    raise ValueError(f"{len(big)} rows, and labels have another length")


features(10)

# %%
question = "The function has failed. How many MB are live, after sys.last_traceback is cleared?"
guess = predict("08-K2", question, [0, 40])

# %%
sys.last_traceback = sys.last_value = sys.last_exc = sys.last_type = None
guess.reveal(live_mb())
print(largest(1)[0].holders[0])

# %% [markdown]
# The last traceback keeps its frames, and frames keep their variables; IPython has three copies beside `sys`'s own
# ([2023](https://github.com/jax-ml/jax/issues/14934)). After a real `RESOURCE_EXHAUSTED` this is why the *next* attempt fails as
# well, and why people restart the kernel. Another uncaught error would free it. So does:

# %%
print("freed MB:", round(let_go().freed / 1e6), " live:", live_mb())

# %% [markdown]
# ## Break it
#
# An evaluation that does not give up. Each batch is tried, failures are collected for the report at the end. It is careful code: it
# keeps no result, and no array.


# %%
def try_all(batches, note):
    failures = []
    for _ in range(batches):
        try:
            features(2)
        except ValueError as error:
            failures.append(note(error))
    return failures


# %%
question = "Six batches of 8 MB fail. How many MB are live while the report is written?"
guess = predict("08-O1", question, [0, 8, 48])

# %%
failures = try_all(6, note=lambda error: error)
guess.reveal(live_mb())
print(largest(1)[0].holders[0])

# %% [markdown]
# An exception is not a message. It carries its traceback, that its frames, those their arrays. The list of errors is a list of
# batches.

# %% [markdown]
# ## Repair it
#
# Keep the text. If the traceback is wanted, format it *now*: text holds no frames.

# %%
import traceback

failures = try_all(6, note=lambda error: "".join(traceback.format_exception(error)))
print("live MB:", live_mb(), " last line of a note:", failures[0].strip().splitlines()[-1])

# %% [markdown]
# Deleting and `gc.collect()` do not help while something refers to an array. `holders(array)` and `largest(n)` say what does: the
# question to ask before restarting a kernel.

# %% [markdown]
# ## In the wild
#
# **The triage table.** Three families use memory up: *retained compiles*, *host RAM*, and the *device's allocator*. Three small
# workloads, one of each, in a fresh process. For each of them three numbers before and after: the programs that JAX keeps, the
# bytes of live arrays, and the RSS that these do not explain.

# %%
TRIAGE = """
import gc, json, jax, jax.numpy as jnp, numpy as np
from traceonce.observe.memory import executables, live_bytes, rss
f = jax.jit(lambda v: (v * 2).sum())
jax.block_until_ready([f(jnp.ones(n)) for n in (50, 51)])  # what the compiler takes once is there before
workloads = {
    "a new shape each call": lambda: [f(np.ones(n, "float32")).block_until_ready() for n in range(1, 25)],
    "NumPy masks in a list": lambda: [np.ones((1080, 1920), "float32") for _ in range(10)],
    "device arrays in a list": lambda: [jnp.ones((1080, 1920)).block_until_ready() for _ in range(10)],
}
def numbers():
    gc.collect()
    live = live_bytes().bytes
    return executables(), live / 1e6, (rss() - live) / 1e6  # on a CPU, live arrays are in RAM
for kind, work in workloads.items():
    before = numbers()
    held = work()
    print(json.dumps([kind, *(b - a for a, b in zip(before, numbers()))]))
    del held
"""

# %% claims=["O1"]
ending = run("triage", TRIAGE, memory_mb=1200, environment=RETURNED)
print(f"{'workload':24} programs  live arrays  host RAM beside them")
for kind, programs, arrays, host in map(json.loads, ending.stdout.splitlines()):
    print(f"{kind:24} {programs > 20!s:8}  {arrays > 50!s:11}  {host > 50}")

# %% [markdown]
# Each workload moves one column. On a CPU all three end up in the same RAM (a program takes a little of it too), and `top` cannot
# tell them apart; these numbers can. And the deaths of this lesson, as they were:

# %% claims=["O1", "O2"]
order = ("killed", "refused, Python", "refused, threads", "a worker killed", "exhausted")
print(f"{'what happened':18} {'exit':>4}  said something  kind")
for name in (name for name in order if name in endings):
    e = endings[name]
    print(f"{name:18} {e.shell_code:4}  {bool(e.stderr)!s:14}  {e.kind}")

# %% [markdown]
# | what you see | family | look at | then |
# |---|---|---|---|
# | 137, nothing said | host RAM | `dmesg`, `memory.events`, the journal | stream, pack, bound; size by the spike |
# | 137 after hours, number of programs grows | retained compiles | `watch`, `explain` (lesson 05) | fewer contracts, `clear_cache` |
# | 134, a line about threads or `bad_alloc` | host, a limit on addresses | `ulimit -v` | raise it |
# | `MemoryError` | host RAM, refused | the line it names | smaller pieces |
# | `RESOURCE_EXHAUSTED`, perhaps behind a wrapper | device allocator | `__cause__`, the plan (08b) | chunk, rematerialise, donate |
# | "worker killed", `BrokenProcessPool` | host RAM, in the worker | entries × size × workers | fewer, bounded |
# | the second attempt fails as well | something still refers | `holders`, `let_go` | keep text, not errors |

# %% [markdown]
# **Read a real pipeline** (10 minutes). Open Segment Anything's
# [automatic_mask_generator.py](https://github.com/facebookresearch/segment-anything/blob/006dbe55b9cbbc8b52b60fa2ba04b3d0581d0a02/segment_anything/automatic_mask_generator.py).
#
# 1. In which form does a mask outlive the batch that made it?
# 2. Why is there a `del data["masks"]` in `_process_batch`?
# 3. Where does the full mask come back, and for how many masks at once?
# 4. You run `generate` over a video and keep what it returns. Which `output_mode`?

# %% [markdown]
# <details><summary>What you should find</summary>
#
# 1. As run lengths (`mask_to_rle_pytorch`): lossless for a bit mask, and small where regions are smooth.
# 2. The dictionary would hold the batch's full masks until the crop is done: accumulate, in the disguise of a record.
# 3. With `output_mode="binary_mask"`, the default, all masks of an image together. The docstring warns of it.
# 4. An encoded one, decoded lazily. Even then the list grows with the video: write it out, or keep the statistic alone.
#
# </details>

# %% [markdown]
# **Seen in public.** Each of these was reported from somebody's own work.
#
# | report | what was seen | section |
# |---|---|---|
# | [systemd#23606](https://github.com/systemd/systemd/issues/23606) | compiles killed by pressure, at 6 GB of 32 | Reading the body |
# | [ipython#12879](https://github.com/ipython/ipython/issues/12879) | a displayed array is not freed by `del` | What stays alive |
# | [jax#14934](https://github.com/jax-ml/jax/issues/14934) | after an error the memory stays full | What stays alive |
# | [tpu-inference#1470](https://github.com/vllm-project/tpu-inference/pull/1470) | live arrays add up to too much | What stays alive |
# | [jax#10007](https://github.com/jax-ml/jax/issues/10007) | one more buffer each turn (mended since) | What stays alive |
# | [jax#2072](https://github.com/jax-ml/jax/issues/2072), [jax#7930](https://github.com/jax-ml/jax/issues/7930) | RAM creeps up with each new shape (run in lesson 05) | In the wild |

# %% [markdown]
# ## Recap
#
# - 137 without a word: SIGKILL. The reason is in the kernel's log, the cgroup's events or the journal, never in yours.
# - 134 talks; `MemoryError` and `RESOURCE_EXHAUSTED` can be caught, and are found behind wrappers by their text.
# - Stream what you can, pack what you must keep, decode lazily. The factor depends on the data.
# - A cache weighs entries × size × workers, and a job is sized by its spike.
# - Sums replace rows; running sums want Welford's form.
# - Outputs, tracebacks and kept exceptions hold arrays. Ask `holders` before you restart.

# %% [markdown]
# ## Lab
#
# [08b](08b_device_memory.ipynb) comes first: what a compiled program will need, read before it runs. Then
# [Lab 08](../../labs/lab08_memory.ipynb) brings normal equations, a fan-out, a stream of masks and a cache under a budget, and no
# number may change.
