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
#     lab: lab12_research_repo
# ---

# %% [markdown]
# # Lab 12 · Six faults and an idea
#
# ## Situation
#
# `digitnet` reads handwritten digits. It came with a paper, its tests pass, and its reported loss is on record. Its users write:
# dropout hardly helps. One step in each epoch is slow. A sweep over the weight decay gives the same curve each time. The gradient
# statistics of a large set die with 137. The device idles through training. Evaluation takes longer than training.
#
# Somebody offers to rewrite it all. You repair it instead: **six faults, and no reported number moves.** Then you add a regulariser,
# and the tests that were missing. About an hour. What you need is in [lesson 12](../course/12_research_repo/12_research_repo.ipynb).

# %% [markdown]
# **How this works.** The cells below are the repository as it came. They are written to disk as a real package, `lab12_repo/`, which
# you can run, test and read with an editor. Your cells hold the functions that you repair; each begins with the name of its file, and
# `lay_out()` writes them into the package.
#
# Only your cells are graded, so helpers belong into them. Visible asserts answer at once, and they are not all.

# %% nbgrader={"grade": false, "grade_id": "given_imports", "locked": true, "schema_version": 3, "solution": false, "task": false}
import ast
import io
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from traceonce import key_uses, plan, syncs, watch
from traceonce.data import digits

jax.config.update("jax_default_matmul_precision", "highest")  # full float32 on a GPU too

# %% nbgrader={"grade": false, "grade_id": "given_remember", "locked": true, "schema_version": 3, "solution": false, "task": false}
CELLS = []  # the text of each cell that is run, for the package on disk


def remember(cell):
    CELLS.append(cell.raw_cell)


if "get_ipython" in globals() and hasattr(get_ipython(), "events"):
    get_ipython().events.register("pre_run_cell", remember)

# %% [markdown]
# ### The repository as it came
#
# Settings and data. The outer columns of a digit are nearly always paper, so an image is 8 high and 6 wide.

# %% nbgrader={"grade": false, "grade_id": "given_config", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/config.py
CONFIG = {"batch": 16, "rate": 0.2, "momentum": 0.8, "keep": 0.8, "decay": 0.01, "rough": 0.0, "seed": 0}
IMAGE = (8, 6)


# %% nbgrader={"grade": false, "grade_id": "given_load", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/data.py
def load():
    """All digits: (1797, 48) in 0 to 1, and their labels."""
    pixels, labels = digits()
    return pixels.reshape(-1, 8, 8)[:, :, 1:7].reshape(-1, 48), labels


# %% nbgrader={"grade": false, "grade_id": "given_batches", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/data.py
def batches(x, y, size, seed, epoch):
    """The rows in the order of this epoch, `size` at a time."""
    order = np.random.default_rng([seed, epoch]).permutation(len(x))
    for start in range(0, len(x), size):
        rows = order[start : start + size]
        yield x[rows], y[rows]


# %% [markdown]
# The model: one hidden layer with dropout. Without a key there is none. This file is in order.


# %% nbgrader={"grade": false, "grade_id": "given_model", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/model.py
def scores(params, x, key=None, keep=1.0):
    """(n, 10). With a key, hidden units are dropped."""
    hidden = jnp.tanh(x @ params["w1"] + params["b1"])
    if key is not None:
        hidden = hidden * jax.random.bernoulli(key, keep, hidden.shape) / keep
    return hidden @ params["w2"] + params["b2"]


def row_losses(params, x, y, key=None, keep=1.0):
    """Cross entropy of each row, (n,)."""
    logp = jax.nn.log_softmax(scores(params, x, key, keep))
    return -jnp.sum(logp * (y[:, None] == jnp.arange(10)), axis=1)


# %% nbgrader={"grade": false, "grade_id": "given_state", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/model.py
def new_state(seed, inputs=48, hidden=16):
    """Parameters, their velocity and the number of steps taken: what a checkpoint holds."""
    rng = np.random.default_rng(seed)
    params = {
        "w1": rng.normal(0, inputs**-0.5, (inputs, hidden)).astype("float32"),
        "b1": np.zeros(hidden, "float32"),
        "w2": rng.normal(0, hidden**-0.5, (hidden, 10)).astype("float32"),
        "b2": np.zeros(10, "float32"),
    }
    return {"params": params, "velocity": jax.tree.map(np.zeros_like, params), "step": np.int32(0)}


# %% [markdown]
# Training. `fit` runs the epochs from `first` to `last - 1` and returns the state and the reported loss of each: the mean cross
# entropy over the rows, without the penalty. A run that diverges stops with a `FloatingPointError`.


# %% nbgrader={"grade": false, "grade_id": "given_train_step", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/train.py
def objective(params, x, y, key, config):
    """What is minimised, and the loss that is reported."""
    loss = row_losses(params, x, y, key, config["keep"]).mean()
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    return loss + CONFIG["decay"] * squares, loss


@jax.jit
def train_step(state, x, y, key, config):
    """One step of SGD with momentum."""
    grads, loss = jax.grad(objective, has_aux=True)(state["params"], x, y, key, config)
    velocity = jax.tree.map(lambda v, g: config["momentum"] * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - config["rate"] * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "step": state["step"] + 1}, loss


# %% nbgrader={"grade": false, "grade_id": "given_fit", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/train.py
def fit(state, x, y, config, key, first, last):
    """Train for the epochs first to last - 1: (state, reported losses)."""
    CONFIG.update(config)
    dropout_key = jax.random.fold_in(key, config["seed"])
    history = []
    for epoch in range(first, last):
        total = 0.0
        for rows, labels in batches(x, y, config["batch"], config["seed"], epoch):
            state, loss = train_step(state, rows, labels, dropout_key, config)
            if not np.isfinite(float(loss)):
                raise FloatingPointError(f"the loss is {loss} in epoch {epoch}")
            total += float(loss) * len(rows)
        history.append(total / len(x))
    return state, history


# %% [markdown]
# Evaluation, and an analysis of the paper: the length of each row's own gradient, over all parameters.


# %% nbgrader={"grade": false, "grade_id": "given_evaluate", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/evaluate.py
def evaluate(params, x, y):
    """The reported metrics of a set, without dropout."""
    right = scores(params, x).argmax(axis=1) == y
    return {"loss": float(row_losses(params, x, y).mean()), "accuracy": float(right.mean())}


@jax.jit
def gradient_norms(params, x, y):
    """The length of each row's gradient, (n,)."""

    def norm(image, label):
        grads = jax.grad(lambda p: row_losses(p, image[None], label[None])[0])(params)
        return jnp.sqrt(sum(jnp.sum(grad**2) for grad in jax.tree.leaves(grads)))

    return jax.vmap(norm)(x, y)


# %% nbgrader={"grade": false, "grade_id": "given_checkpoint", "locked": true, "schema_version": 3, "solution": false, "task": false}
# digitnet/checkpoint.py
def pack(state):
    """A state as bytes."""
    flat = {f"{part}/{name}": array for part in ("params", "velocity") for name, array in state[part].items()}
    file = io.BytesIO()
    np.savez(file, step=state["step"], **flat)
    return file.getvalue()


def unpack(data):
    """The state in these bytes."""
    state = {"params": {}, "velocity": {}}
    with np.load(io.BytesIO(data)) as stored:
        for name in stored.files[1:]:
            part, leaf = name.split("/")
            state[part][leaf] = stored[name]
        return state | {"step": stored["step"]}


# %% [markdown]
# Its tests: a small set, 40 rows, and two functions. They pass. They passed for a year.


# %% nbgrader={"grade": false, "grade_id": "given_small", "locked": true, "schema_version": 3, "solution": false, "task": false}
# tests/test_digitnet.py
def small():
    """A state and 40 rows, three batches of 16, 16 and 8."""
    rng = np.random.default_rng(12)
    return new_state(12), rng.random((40, 48), "float32"), rng.integers(0, 10, 40).astype("int32")


def run_small(first=0, last=2, **changes):
    """Train on it: (state, reported losses)."""
    state, x, y = small()
    return fit(state, x, y, {**CONFIG, **changes}, jax.random.key(0), first, last)


# %% nbgrader={"grade": false, "grade_id": "given_tests", "locked": true, "schema_version": 3, "solution": false, "task": false}
# tests/test_digitnet.py
def test_the_loss_falls():
    _, history = run_small(keep=1.0, decay=0.01, rough=0.0)
    assert history[1] < history[0]


def test_a_checkpoint_comes_back():
    state = new_state(3)
    same = jax.tree.map(np.array_equal, unpack(pack(state)), state)
    assert jax.tree.all(same)


# %% [markdown]
# ### On disk
#
# `lay_out` takes the cells that were run, in their order, by the file that stands in the first line. Where a name comes twice in a
# file, the later one counts.

# %% nbgrader={"grade": false, "grade_id": "given_pieces", "locked": true, "schema_version": 3, "solution": false, "task": false}
MODULES = ["config", "data", "model", "train", "evaluate", "checkpoint"]
HEAD = {"data": "from traceonce.data import digits", "checkpoint": "import io"}


def pieces(sources):
    """For each file, its top-level definitions by name."""
    files = {}
    for source in sources:
        name = source.split("\n", 1)[0].removeprefix("# ").strip()
        if name.endswith(".py") and "/" in name:
            for node in (node for node in ast.parse(source).body if not isinstance(node, ast.Raise)):
                text = ast.get_source_segment(source, node)
                for decorator in reversed(getattr(node, "decorator_list", [])):
                    text = f"@{ast.unparse(decorator)}\n{text}"
                files.setdefault(name, {})[getattr(node, "name", text)] = text
    return files


# %% nbgrader={"grade": false, "grade_id": "given_lay_out", "locked": true, "schema_version": 3, "solution": false, "task": false}
def lay_out(folder="lab12_repo"):
    """Write the package as the cells have it now, and run its tests."""
    root = Path(folder)
    for name, definitions in pieces(CELLS).items():
        module, lines = Path(name).stem, ["import jax", "import jax.numpy as jnp", "import numpy as np", ""]
        before = MODULES[: MODULES.index(module)] if module in MODULES else MODULES
        lines[3:3] = [HEAD[module]] if module in HEAD else []
        lines += [f"from digitnet.{other} import *" for other in before]
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n\n\n" + "\n\n\n".join(definitions.values()) + "\n")
    for package, main in {"digitnet": MAIN, "tests": TESTS_MAIN}.items():
        (root / package / "__init__.py").touch()
        (root / package / "__main__.py").write_text(main)
    ran = subprocess.run([sys.executable, "-B", "-m", "tests"], cwd=root, capture_output=True, text=True)
    return (ran.stdout + ran.stderr).strip().rsplit("\n", 1)[-1]


# %% nbgrader={"grade": false, "grade_id": "given_main", "locked": true, "schema_version": 3, "solution": false, "task": false}
MAIN = """from digitnet.checkpoint import *
from digitnet.config import *
from digitnet.data import *
from digitnet.evaluate import *
from digitnet.model import *
from digitnet.train import *

x, y = load()
state, history = fit(new_state(0), x[:1200], y[:1200], CONFIG, jax.random.key(0), 0, 3)
print("reported losses", [round(loss, 2) for loss in history])
print(evaluate(state["params"], x[1200:], y[1200:]))
"""
TESTS_MAIN = """from tests import test_digitnet

names = [name for name in vars(test_digitnet) if name.startswith("test_")]
for name in names:
    getattr(test_digitnet, name)()
print(len(names), "tests pass")
"""

# %% nbgrader={"grade": false, "grade_id": "given_first_run", "locked": true, "schema_version": 3, "solution": false, "task": false}
if CELLS:  # in a notebook, where the cells can be read
    print(lay_out())

# %% [markdown]
# In a terminal, in the folder of this notebook: `cd lab12_repo`, then `python -m tests` (or `pytest`, where you have it),
# `python -m digitnet`, or `traceonce run -m digitnet`. In the notebook, take the whole package under the tools of the course:


# %% nbgrader={"grade": false, "grade_id": "given_symptoms", "locked": true, "schema_version": 3, "solution": false, "task": false}
def symptoms(fit):
    """What two epochs on the small set cost: traces of train_step, reads, keys that draw."""
    state, x, y = small()
    config = {**CONFIG, "keep": 0.8}
    with watch() as seen, syncs() as waited:
        fit(state, x, y, config, jax.random.key(0), 0, 2)
    with key_uses() as keys:
        fit(state, x, y, config, keys.watch(jax.random.key(0)), 0, 2)
    draws = [len(keys.draws), sum(keys.draws.values())]
    return {"traces": seen["train_step"].traces, "reads": waited.reads, "keys, masks": draws}


# %% nbgrader={"grade": false, "grade_id": "given_show_symptoms", "locked": true, "schema_version": 3, "solution": false, "task": false}
if CELLS:
    print(symptoms(fit))

# %% [markdown]
# Before anything changes, the record: what `run_small` reports *as it came*, without dropout (`keep=1`), for two strengths of the
# decay, each in a process of its own. Nothing that you do may move these numbers by more than rounding.

# %% nbgrader={"grade": false, "grade_id": "given_record", "locked": true, "schema_version": 3, "solution": false, "task": false}
# tests/test_digitnet.py
RECORD = {0.01: [2.409093, 2.22598], 0.3: [2.395293, 2.255948]}

# %% [markdown]
# From here on the repaired names are yours: the originals leave this notebook, and stay in `lab12_repo/` until you lay out the package
# again. `%load -s fit lab12_repo/digitnet/train.py` in a cell brings the text of a function.

# %% nbgrader={"grade": false, "grade_id": "given_hand_over", "locked": true, "schema_version": 3, "solution": false, "task": false}
for name in ("batches", "objective", "train_step", "fit", "evaluate", "gradient_norms"):
    del globals()[name]

# %% [markdown]
# ## Task 1 · train.py
#
# *20 minutes, the heart of the lab.* Four of the six faults are in how `batches`, `objective`, `train_step` and `fit` work together.
# Find them with the tools, and repair them. What must stay:
#
# - `fit(state, x, y, config, key, first, last)` and what it returns; the form of the state, so that old checkpoints load; the order of
#   the rows; every row once an epoch; the `FloatingPointError` of a run that diverges.
# - `train_step` is one jitted function of that name, called for each batch. What it takes is yours to decide, and so is what `batches`
#   yields. A run changes no global.

# %% [markdown]
# What must become true: `train_step` is traced **once**, for all batches, all epochs and all numbers in `config`; every number in
# `config` counts; each step drops units by a key of its own, and a run that is resumed from its state draws what the uninterrupted one
# draws; Python reads at most **twice an epoch**.
#
# Look back at [Eleven symptoms](../course/12_research_repo/12_research_repo.ipynb#Eleven-symptoms)
# and [Before a long run](../course/12_research_repo/12_research_repo.ipynb#Before-a-long-run).
#
# The visible asserts of Tasks 1 and 2 stand together, below Task 2. Leave `roughness` out of the objective until you get there.

# %% [markdown]
# <details><summary>If the reported loss moved a little</summary>
#
# Padding has no label. A mean over padded rows divides by too much, and a padded row has a loss. Multiply the losses by a mask, and
# divide by the number of real rows, in the objective and in the report.
#
# </details>
#
# <details><summary>If a resumed run differs</summary>
#
# A counter of your own starts at 0 again. `state["step"]` does not.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "batches", "locked": false, "schema_version": 3, "solution": true, "task": false}
# digitnet/data.py
### BEGIN SOLUTION
def batches(x, y, size, seed, epoch):
    """The rows in the order of this epoch, in batches of `size`, the last one padded: (x, y, 1 for a real row)."""
    order = np.random.default_rng([seed, epoch]).permutation(len(x))
    for start in range(0, len(x), size):
        rows = order[start : start + size]
        missing = size - len(rows)
        real = np.float32(np.arange(size) < len(rows))
        yield np.pad(x[rows], ((0, missing), (0, 0))), np.pad(y[rows], (0, missing)), real


### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "objective", "locked": false, "schema_version": 3, "solution": true, "task": false}
# digitnet/train.py
### BEGIN SOLUTION
def objective(params, x, y, real, key, config):
    """What is minimised, and the summed loss of the real rows."""
    losses = row_losses(params, x, y, key, config["keep"]) * real
    squares = jnp.sum(params["w1"] ** 2) + jnp.sum(params["w2"] ** 2)
    penalty = config["decay"] * squares + config["rough"] * roughness(params)
    return losses.sum() / real.sum() + penalty, losses.sum()


### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "train_step", "locked": false, "schema_version": 3, "solution": true, "task": false}
# digitnet/train.py
### BEGIN SOLUTION
@jax.jit
def train_step(state, x, y, real, key, config):
    """One step of SGD with momentum; the step's number makes its key."""
    key = jax.random.fold_in(key, state["step"])
    grads, loss = jax.grad(objective, has_aux=True)(state["params"], x, y, real, key, config)
    velocity = jax.tree.map(lambda v, g: config["momentum"] * v + g, state["velocity"], grads)
    params = jax.tree.map(lambda p, v: p - config["rate"] * v, state["params"], velocity)
    return {"params": params, "velocity": velocity, "step": state["step"] + 1}, loss


### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "fit", "locked": false, "schema_version": 3, "solution": true, "task": false}
# digitnet/train.py
### BEGIN SOLUTION
def fit(state, x, y, config, key, first, last):
    """Train for the epochs first to last - 1: (state, reported losses)."""
    history = []
    for epoch in range(first, last):
        losses = []
        for rows, labels, real in batches(x, y, config["batch"], config["seed"], epoch):
            state, loss = train_step(state, rows, labels, real, key, config)
            losses.append(loss)
        history.append(float(np.sum(jax.device_get(losses)) / len(x)))  # the only wait of the epoch
        if not np.isfinite(history[-1]):
            raise FloatingPointError(f"the loss is {history[-1]} in epoch {epoch}")
    return state, history


### END SOLUTION


# %% [markdown]
# ## Task 2 · roughness
#
# *10 minutes.* The idea: the first layer's weights are pictures, one for each hidden unit, and neighbouring pixels should weigh alike.
# `roughness(params)` sees `w1`, shape `(48, hidden)`, as pictures of 8 by 6, and returns
#
# - the mean, over all vertical neighbours and units, of the squared difference, **plus**
# - the mean, over all horizontal neighbours and units, of the squared difference.
#
# Add `config["rough"] * roughness(params)` to your objective in Task 1, and not to the reported loss.
# Look back at [Change one thing](../course/12_research_repo/12_research_repo.ipynb#Change-one-thing).

# %% [markdown]
# Climb the ladder of lesson 04: zero for flat pictures, with gradient zero; a picture that you can do by hand; differences; strength 0
# gives the old run; then training.
#
# <details><summary>If the value is too large</summary>
#
# The last pixel of a row and the first of the next are neighbours in memory, not in the picture. Reshape first.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "given_slope", "locked": true, "schema_version": 3, "solution": false, "task": false}
# tests/test_digitnet.py
def slope():
    """Pictures for w1: 3 more from row to row, 2 more from column to column."""
    down, across = np.mgrid[: IMAGE[0], : IMAGE[1]]
    return np.repeat((3.0 * down + 2.0 * across).reshape(48, 1), 16, axis=1).astype("float32")


# %% nbgrader={"grade": false, "grade_id": "roughness", "locked": false, "schema_version": 3, "solution": true, "task": false}
# digitnet/train.py
### BEGIN SOLUTION
def roughness(params):
    """Mean squared difference of vertical neighbours, plus that of horizontal ones."""
    pictures = params["w1"].reshape(*IMAGE, -1)
    return jnp.mean(jnp.diff(pictures, axis=0) ** 2) + jnp.mean(jnp.diff(pictures, axis=1) ** 2)


### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_fit", "locked": true, "points": 5, "schema_version": 3, "solution": false, "task": false}
assert hasattr(train_step, "lower"), "expected train_step to be compiled by jax.jit."
assert train_step.__name__ == "train_step", f"expected the name train_step; got {train_step.__name__}."
train_step.clear_cache()
found = symptoms(fit)
assert found["traces"] == 1, f"expected one trace in two epochs; got {found['traces']}."
for decay, losses in RECORD.items():
    got = run_small(keep=1.0, decay=decay)[1]
    assert np.allclose(got, losses, rtol=1e-4), f"decay {decay}: {losses} is on record; got {got}."
assert found["reads"] <= 4, f"expected at most 4 reads in two epochs; got {found['reads']}."
keys, masks = found["keys, masks"]
assert keys == masks == 6, f"expected 6 masks by 6 keys; got {masks} by {keys}."
print("Task 1: the visible asserts pass. Hidden ones use other rows and settings, resume, and diverge.")

# %% nbgrader={"grade": true, "grade_id": "test_roughness", "locked": true, "points": 3, "schema_version": 3, "solution": false, "task": false}
got = float(roughness({**new_state(0)["params"], "w1": slope()}))
assert np.isclose(got, 13), f"expected 3 * 3 + 2 * 2 for the slope; got {got:.3f}."
flat = jax.grad(roughness)({**new_state(0)["params"], "w1": jnp.ones((48, 16))})
assert not jnp.any(flat["w1"]), "expected the gradient 0 for flat pictures."
smooth, rough = (run_small(keep=1.0, decay=0.01, rough=rough)[0] for rough in (5.0, 0.0))
smooth, rough = float(roughness(smooth["params"])), float(roughness(rough["params"]))
assert smooth < 0.7 * rough, f"expected smoother pictures with strength 5: {smooth:.3f} against {rough:.3f}."
print("Task 2: the visible asserts pass. Hidden ones compare whole runs, at several strengths.")

# %% [markdown]
# ## Task 3 · evaluate.py
#
# *10 minutes.* The other two faults. `evaluate(params, x, y)` runs as **compiled** code: at most three programs for all calls with sets of one size. Same
# dict, same numbers, Python floats.
#
# `gradient_norms(params, x, y)` gives the same `(n,)` norms and may plan **250 kB of temporaries** for 256 rows. It works for any number of
# rows, and its program must not grow with it.
#
# Look back at [Eleven symptoms](../course/12_research_repo/12_research_repo.ipynb#Eleven-symptoms).
#
# <details><summary>Two ways</summary>
#
# `jax.lax.map(function, xs, batch_size=8)` takes a few rows at a time. Or think: a row's gradient of a layer is an outer product, and
# the length of an outer product is the product of the lengths. Then nothing large exists at all.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "evaluate", "locked": false, "schema_version": 3, "solution": true, "task": false}
# digitnet/evaluate.py
### BEGIN SOLUTION
@jax.jit
def metrics(params, x, y):
    right = scores(params, x).argmax(axis=1) == y
    return {"loss": row_losses(params, x, y).mean(), "accuracy": right.mean()}


def evaluate(params, x, y):
    """The reported metrics of a set, without dropout."""
    return {name: float(value) for name, value in jax.device_get(metrics(params, x, y)).items()}


### END SOLUTION


# %% nbgrader={"grade": false, "grade_id": "gradient_norms", "locked": false, "schema_version": 3, "solution": true, "task": false}
# digitnet/evaluate.py
### BEGIN SOLUTION
@jax.jit
def gradient_norms(params, x, y):
    """The length of each row's gradient, (n,), a few rows at a time."""

    def norm(row):
        image, label = row
        grads = jax.grad(lambda p: row_losses(p, image[None], label[None])[0])(params)
        return jnp.sqrt(sum(jnp.sum(grad**2) for grad in jax.tree.leaves(grads)))

    return jax.lax.map(norm, (x, y), batch_size=8)


### END SOLUTION


# %% nbgrader={"grade": true, "grade_id": "test_evaluate", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
state, x, y = small()
with watch(everything=True) as seen:
    got = evaluate(state["params"], x[:39], y[:39])
assert seen.total.compiles <= 3, f"expected at most three programs; got {seen.total.compiles}."
losses = row_losses(state["params"], x[:39], y[:39])
assert np.isclose(got["loss"], float(losses.mean()), atol=1e-5), f"expected {losses.mean():.5f}; got {got['loss']:.5f}."
assert isinstance(got["accuracy"], float), f"expected Python floats; got {type(got['accuracy']).__name__}."
print("evaluate: the visible asserts pass. Hidden ones compare its numbers on other rows.")

# %% nbgrader={"grade": true, "grade_id": "test_gradient_norms", "locked": true, "points": 2, "schema_version": 3, "solution": false, "task": false}
images, labels = load()
planned = plan(gradient_norms, state["params"], images[:256], labels[:256]).temporaries
assert planned <= 250_000, (
    f"expected at most 250,000 bytes of temporaries for 256 rows; the compiler plans {planned:,}."
)
grads = jax.grad(lambda p: row_losses(p, x[:1], y[:1])[0])(state["params"])
expected = float(jnp.sqrt(sum(jnp.sum(grad**2) for grad in jax.tree.leaves(grads))))
got = gradient_norms(state["params"], x, y)
assert got.shape == (40,), f"expected one norm for each of 40 rows; got {got.shape}."
assert np.isclose(got[0], expected, rtol=1e-4), f"expected {expected:.4f} for the first row; got {got[0]:.4f}."
print("gradient_norms: the visible asserts pass. Hidden ones compare all rows, and look at the plan again.")

# %% [markdown]
# ## Task 4 · The tests that were missing
#
# *12 minutes.* Write at least two tests: functions that take nothing, whose names begin with `test_`, and that raise an `AssertionError` where
# the code is wrong. They pass on your repository. The grader sabotages `fit` and `roughness` and runs them; at least one must fail each
# time. `run_small`, `RECORD` and everything above are at hand.
#
# Sabotage of `fit`: a decay that stays at 0.01, whatever the config says; the short batch is dropped; another order of rows; the
# regulariser's strength is ignored; a report that includes the penalty. Of `roughness`: a wrong neighbour, one direction alone, a factor.
# Once, nothing is changed but the object: then all must pass.
# Look back at [Preserve or port](../course/12_research_repo/12_research_repo.ipynb#Preserve-or-port).

# %% [markdown]
# <details><summary>If a factor is not noticed</summary>
#
# "Smoother than before" holds for any factor. Compute a value by hand and compare it with a tolerance. `slope()` tells the two
# directions apart, and the ends of the rows.
#
# </details>


# %% nbgrader={"grade": false, "grade_id": "tests", "locked": false, "schema_version": 3, "solution": true, "task": false}
# tests/test_digitnet.py
### BEGIN SOLUTION
def test_reported_losses_are_those_on_record():
    for decay, losses in RECORD.items():
        assert np.allclose(run_small(keep=1.0, decay=decay)[1], losses, rtol=1e-4)


def test_roughness_of_a_slope():
    assert np.isclose(roughness({**new_state(0)["params"], "w1": slope()}), 13, rtol=1e-4)


def test_strength_smooths():
    params = [run_small(keep=1.0, rough=rough)[0]["params"] for rough in (0.0, 5.0)]
    assert roughness(params[1]) < 0.7 * roughness(params[0])


### END SOLUTION


# %% [markdown]
# The saboteur. Each kind takes the place of `fit` or `roughness` and calls yours.


# %% nbgrader={"grade": false, "grade_id": "given_sabotage_fit", "locked": true, "schema_version": 3, "solution": false, "task": false}
def sabotaged_fit(kind, honest):
    def fit(state, x, y, config, key, first, last):
        if kind == "old decay":
            config = {**config, "decay": 0.01}
        if kind == "drops rows":
            x, y = (rows[: len(x) // config["batch"] * config["batch"]] for rows in (x, y))
        if kind == "other order":
            x, y = x[::-1], y[::-1]
        if kind == "no strength":
            config = {**config, "rough": 0.0}
        state, history = honest(state, x, y, config, key, first, last)
        if kind == "reports the penalty":
            squares = sum(float(np.sum(np.square(state["params"][name]))) for name in ("w1", "w2"))
            history = [loss + config["decay"] * squares for loss in history]
        return state, history

    return fit


# %% nbgrader={"grade": false, "grade_id": "given_sabotage_roughness", "locked": true, "schema_version": 3, "solution": false, "task": false}
def sabotaged_roughness(kind, honest, factor):
    def steps(pixels):  # NumPy where NumPy comes
        return ((pixels[1:] - pixels[:-1]) ** 2).mean()

    def roughness(params):
        pictures = params["w1"].reshape(*IMAGE, -1)
        if kind == "wrong neighbour":
            return steps(pictures) + steps(params["w1"])
        if kind == "one direction":
            return steps(pictures)
        return factor * honest(params)

    return roughness


# %% nbgrader={"grade": false, "grade_id": "given_run_tests", "locked": true, "schema_version": 3, "solution": false, "task": false}
def failures():
    """Each test that fails, with what it raised."""
    for name, test in list(globals().items()):
        if name.startswith("test_") and callable(test):
            try:
                test()
            except Exception as error:  # noqa: BLE001 - a sabotaged repository may raise anything
                yield name, type(error).__name__


def failing_tests():
    return dict(failures())


# %% nbgrader={"grade": false, "grade_id": "given_noticed", "locked": true, "schema_version": 3, "solution": false, "task": false}
def noticed(kind, factor=1.0):
    """Whether an assertion fails while `fit` or `roughness` is sabotaged."""
    about = "roughness" if kind in ("wrong neighbour", "one direction", "factor") else "fit"
    honest = globals()[about]
    more = (factor,) if about == "roughness" else ()
    globals()[about] = globals()[f"sabotaged_{about}"](kind, honest, *more)
    try:
        return any(error == "AssertionError" for _, error in failures())
    finally:
        globals()[about] = honest


# %% nbgrader={"grade": true, "grade_id": "test_tests", "locked": true, "points": 4, "schema_version": 3, "solution": false, "task": false}
failed = failing_tests()
assert not failed, f"expected every test to pass on your repository; got {failed}."
assert noticed("old decay"), "expected a test to notice a decay that stays at 0.01."
assert noticed("factor", 1.2), "expected a test to notice a roughness that is 1.2 times too large."
print("Task 4: the visible asserts pass. Hidden ones sabotage in the other ways too.")

# %% [markdown]
# ## The repository as it goes
#
# Write the package once more, and run all of its tests in a process of their own. `python -m digitnet` in `lab12_repo/` now prints the
# same metric, from one program.

# %% nbgrader={"grade": false, "grade_id": "given_last_run", "locked": true, "schema_version": 3, "solution": false, "task": false}
if CELLS:
    print(lay_out())

# %% [markdown]
# ## What the hidden asserts look at
#
# - Whole runs without dropout, on other rows and settings, against the same arithmetic in float64: parameters and reported losses.
# - One trace for all batches and settings; the reads of a run; a key of its own for each step; a resumed run; a run that diverges.
# - Numbers, programs and planned bytes of `evaluate` and `gradient_norms`.
# - The regulariser's value, its gradient for flat pictures, and training with it.
# - Your tests on your repository, and on a sabotaged one.

# %% [markdown]
# ## Going further
#
# - `traceonce run -m digitnet` on the package as it came and as it goes: what does the report say of each?
# - Take the first list of the repository's `docs/preflight.md` to `fit`, line by line.
# - Do the same eight moves in a repository of your own, this week, with one change.
