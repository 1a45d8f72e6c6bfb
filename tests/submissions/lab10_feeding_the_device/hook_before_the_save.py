# ---
# kind: wrong
# trap: calls the hook, and saves after it
# fails: test_resumes_after_a_kill
# hint: before the hook of that step
# ---

# %% nbgrader={"grade_id": "train"}
def train(path, settings, hook):
    run = {"learned": begin(settings["seed"]), "epoch": 0, "row": 0, "done": 0}
    if path.exists():
        run, settings = unpacked(load(path))
    losses = []
    try:
        while run["epoch"] < settings["epochs"]:
            run, loss = advance(run, settings)
            losses.append(loss)
            hook(run["done"])
            if run["done"] % settings["every"] == 0:
                save(path, packed(run, settings))
    finally:
        save(path, packed(run, settings))
    return np.array(jax.device_get(losses), "float32")
