# ---
# kind: wrong
# trap: stops one epoch early
# fails: test_whole_run_gives_its_losses
# hint: the last epoch
# ---

# %% nbgrader={"grade_id": "train"}
def train(path, settings, hook):
    """Start, or go on where `path` stops; the losses of the steps taken now."""
    run = {"learned": begin(settings["seed"]), "epoch": 0, "row": 0, "done": 0}
    if path.exists():
        run, settings = unpacked(load(path))
    losses = []
    try:
        while run["epoch"] < settings["epochs"] - 1:
            run, loss = advance(run, settings)
            losses.append(loss)
            if run["done"] % settings["every"] == 0:
                save(path, packed(run, settings))
            hook(run["done"])
    finally:
        save(path, packed(run, settings))
    return np.array(jax.device_get(losses), "float32")
