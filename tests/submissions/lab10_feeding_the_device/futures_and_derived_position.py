# ---
# kind: alternative
# about: a deque of futures, the position from the number of steps, a file made in memory
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    losses = []
    for x, y in batches:
        learned, loss = step(learned, x, y, rate)
        losses.append(loss)
    losses = np.asarray(jnp.stack(losses))
    for i, loss in enumerate(losses):
        if i % 4 == 0:
            log(i, f"loss {loss:.4f}, best {losses[: i + 1].min():.4f}")
    return learned, losses


# %% nbgrader={"grade_id": "prefetch"}
from collections import deque
from concurrent.futures import ThreadPoolExecutor


def prefetch(source, prepare, place, ready=2):
    items, end = iter(source), object()

    def one():
        item = next(items, end)
        return end if item is end else prepare(item)

    with ThreadPoolExecutor(1) as reader:
        coming = deque(reader.submit(one) for _ in range(ready))
        try:
            while True:
                coming.append(reader.submit(one))
                batch = coming.popleft().result()
                if batch is end:
                    return
                yield place(batch)
        finally:
            for one_more in coming:
                one_more.cancel()


# %% nbgrader={"grade_id": "save"}
import io


def save(path, values):
    memory = io.BytesIO()
    np.savez(memory, **values)
    beside = path.parent / f"{path.stem}.new"
    beside.write_bytes(memory.getvalue())
    beside.replace(path)


def load(path):
    file = np.load(io.BytesIO(path.read_bytes()))
    return {name: file[name] for name in file.files}


# %% nbgrader={"grade_id": "keep"}
def keep(losses, spacing, newest):
    kept = {at for at in losses if at % spacing == 0}
    best = min(losses, key=lambda at: (np.isnan(losses[at]), losses[at]))
    for at in sorted(losses, reverse=True)[:newest]:
        kept.add(at)
    return list(kept | {best})


# %% nbgrader={"grade_id": "train"}
NAMES = ("w", "b", "vw", "vb")


def train(path, settings, hook):
    if path.exists():
        file = load(path)
        settings = {name: file["set " + name].item() for name in settings}
        learned = {name: jnp.asarray(file[name]) for name in NAMES}
        learned["key"] = jax.random.wrap_key_data(jnp.asarray(file["key"]))
        done = int(file["done"])
    else:
        learned, done = begin(settings["seed"]), 0
    a_epoch = settings["rows"] // settings["batch"]
    losses = []

    def write():
        values = {name: np.asarray(learned[name]) for name in NAMES}
        values["key"] = np.asarray(jax.random.key_data(learned["key"]))
        save(path, values | {"set " + name: value for name, value in settings.items()} | {"done": done})

    try:
        for at in range(done, a_epoch * settings["epochs"]):
            epoch, batch = divmod(at, a_epoch)
            rows = order_of(settings, epoch).reshape(-1)[batch * settings["batch"] :][: settings["batch"]]
            learned, loss = step(learned, pixels[rows], labels[rows], settings["rate"])
            losses.append(loss)
            done = at + 1
            if done % settings["every"] == 0:
                write()
            hook(done)
    finally:
        write()
    return np.asarray(jax.device_get(losses), "float32").reshape(-1)
