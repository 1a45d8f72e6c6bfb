# ---
# kind: wrong
# trap: returns arrays
# fails: test_evaluate_gives_the_same_numbers
# hint: as Python floats
# ---

# %% nbgrader={"grade_id": "evaluate"}
# digitnet/evaluate.py
@jax.jit
def metrics(params, x, y):
    right = scores(params, x).argmax(axis=1) == y
    return {"loss": row_losses(params, x, y).mean(), "accuracy": right.mean()}


def evaluate(params, x, y):
    """The reported metrics of a set, without dropout."""
    return metrics(params, x, y)
