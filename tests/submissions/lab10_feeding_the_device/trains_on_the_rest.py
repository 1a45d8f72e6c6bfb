# ---
# kind: wrong
# trap: takes the short rest as a batch
# fails: test_whole_run_gives_its_losses
# hint: drop the short rest
# ---

# %% nbgrader={"grade_id": "advance"}
def advance(run, settings):
    """The run after one more step, and the loss."""
    epoch, row, batch = run["epoch"], run["row"], settings["batch"]
    rows = order_of(settings, epoch)[row : row + batch]
    learned, loss = step(run["learned"], pixels[rows], labels[rows], settings["rate"])
    row += batch
    if row >= settings["rows"]:
        epoch, row = epoch + 1, 0
    return {"learned": learned, "epoch": epoch, "row": row, "done": run["done"] + 1}, loss
