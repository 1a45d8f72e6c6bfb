# ---
# kind: wrong
# trap: saves every tenth step, whatever was asked for
# fails: test_resumes_after_a_kill
# hint: the last multiple of `every`
# ---

# %% nbgrader={"grade_id": "train"}
def train(path, settings, hook):
    """Start, or go on where `path` stops; the losses of the steps taken now."""
    run = {"learned": begin(settings["seed"]), "epoch": 0, "row": 0, "done": 0}
    if path.exists():
        run, settings = unpacked(load(path))
    losses = []
    try:
        while run["epoch"] < settings["epochs"]:
            run, loss = advance(run, settings)
            losses.append(loss)
            if run["done"] % 10 == 0:
                save(path, packed(run, settings))
            hook(run["done"])
    finally:
        save(path, packed(run, settings))
    return np.array(jax.device_get(losses), "float32")
