# ---
# kind: wrong
# trap: goes on with the batch size of the launch
# fails: test_resumes_after_an_interrupt, test_resumes_after_a_kill
# hint: and all settings
# ---

# %% nbgrader={"grade_id": "train"}
def train(path, settings, hook):
    run = {"learned": begin(settings["seed"]), "epoch": 0, "row": 0, "done": 0}
    if path.exists():
        run, stored = unpacked(load(path))
        settings = settings | {name: stored[name] for name in ("seed", "rate", "epochs")}
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
