# ---
# kind: alternative
# about: a scan over all batches, a worker that ends in its own time, a folder beside the file
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    batches = list(batches)
    x, y = np.stack([x for x, _ in batches]), np.stack([y for _, y in batches])
    learned, losses = jax.lax.scan(
        lambda state, batch: step(state, *batch, rate), jax.tree.map(jnp.asarray, learned), (x, y)
    )
    losses = np.asarray(losses)
    best = np.minimum.accumulate(losses)
    for i, (loss, least) in enumerate(zip(losses, best)):
        if not i % 4:
            log(i, f"loss {loss:.4f}, best {least:.4f}")
    return learned, losses


# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    q, done = queue.Queue(maxsize=ready), threading.Event()

    def worker():
        try:
            for item in map(prepare, source):
                while not done.is_set():
                    try:
                        q.put(("ok", item), timeout=0.1)
                        break
                    except queue.Full:
                        pass
                else:
                    return
            message = ("end", None)
        except Exception as e:
            message = ("err", e)
        while not done.is_set():
            try:
                q.put(message, timeout=0.1)
                return
            except queue.Full:
                pass

    t = threading.Thread(target=worker, daemon=True)
    t.start()
    try:
        while True:
            kind, what = q.get()
            if kind == "err":
                raise what
            if kind == "end":
                break
            yield place(what)
    finally:
        done.set()
        while not q.empty():
            q.get_nowait()
        t.join(timeout=1)


# %% nbgrader={"grade_id": "save"}
def save(path, values):
    folder = path.parent / "tmp"
    folder.mkdir(exist_ok=True)
    new = folder / "new.npz"
    np.savez(new, **values)
    os.replace(new, path)


def load(path):
    return {**np.load(path)}
