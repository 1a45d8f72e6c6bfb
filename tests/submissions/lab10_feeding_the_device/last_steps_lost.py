# ---
# kind: wrong
# trap: saves every so many steps, and not at the end
# fails: test_finished_run_takes_no_step
# hint: the last steps were never saved
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
            if run["done"] % settings["every"] == 0:
                save(path, packed(run, settings))
            hook(run["done"])
    except KeyboardInterrupt:
        save(path, packed(run, settings))
        raise
    return np.array(jax.device_get(losses), "float32")
