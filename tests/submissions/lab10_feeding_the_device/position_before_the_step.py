# ---
# kind: wrong
# trap: saves the position before the step with what is learned after it
# fails: test_resumes_after_an_interrupt, test_resumes_after_a_kill
# hint: position after its step
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
            before = run
            run, loss = advance(run, settings)
            losses.append(loss)
            if run["done"] % settings["every"] == 0:
                save(path, packed(run | {"row": before["row"], "epoch": before["epoch"]}, settings))
            hook(run["done"])
    finally:
        save(path, packed(run | {"row": before["row"], "epoch": before["epoch"]}, settings))
    return np.array(jax.device_get(losses), "float32")
