# ---
# kind: wrong
# trap: saves the number of steps, and takes them again from the start
# fails: test_resumes_after_an_interrupt
# hint: taking all steps again
# ---

# %% nbgrader={"grade_id": "train"}
def train(path, settings, hook):
    skip = 0
    if path.exists():
        stored = load(path)
        settings, skip = json.loads(str(stored["settings"])), int(stored["done"])
    run = {"learned": begin(settings["seed"]), "epoch": 0, "row": 0, "done": 0}
    losses = []
    while run["done"] < skip:
        run, _ = advance(run, settings)
    try:
        while run["epoch"] < settings["epochs"]:
            run, loss = advance(run, settings)
            losses.append(loss)
            if run["done"] % settings["every"] == 0:
                save(path, {"settings": json.dumps(settings), "done": run["done"]})
            hook(run["done"])
    finally:
        save(path, {"settings": json.dumps(settings), "done": run["done"]})
    return np.array(jax.device_get(losses), "float32")
