# ---
# kind: wrong
# trap: a restart takes the settings it is launched with
# fails: test_resumes_after_an_interrupt, test_resumes_after_a_kill
# hint: all that a step depends on
# ---

# %% nbgrader={"grade_id": "train"}
def train(path, settings, hook):
    """Start, or go on where `path` stops; the losses of the steps taken now."""
    run = {"learned": begin(settings["seed"]), "epoch": 0, "row": 0, "done": 0}
    if path.exists():
        run, _ = unpacked(load(path))
    losses = []
    try:
        while run["epoch"] < settings["epochs"]:
            run, loss = advance(run, settings)
            losses.append(loss)
            if run["done"] % settings["every"] == 0:
                save(path, packed(run, settings))
            hook(run["done"])
    finally:
        save(path, packed(run, settings))
    return np.array(jax.device_get(losses), "float32")
