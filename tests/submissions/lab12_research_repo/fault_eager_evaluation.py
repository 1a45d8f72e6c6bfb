# ---
# kind: wrong
# trap: unrepaired: evaluation is not compiled
# fails: test_evaluate_is_compiled
# hint: Eager code makes one for each operation
# ---

# %% nbgrader={"grade_id": "evaluate"}
# digitnet/evaluate.py
def evaluate(params, x, y):
    right = scores(params, x).argmax(axis=1) == y
    return {"loss": float(row_losses(params, x, y).mean()), "accuracy": float(right.mean())}
