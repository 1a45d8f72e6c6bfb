# ---
# kind: wrong
# trap: evaluates with dropout on
# fails: test_evaluate_gives_the_same_numbers
# hint: without dropout
# ---

# %% nbgrader={"grade_id": "evaluate"}
# digitnet/evaluate.py
@jax.jit
def metrics(params, x, y):
    right = scores(params, x).argmax(axis=1) == y
    return {"loss": row_losses(params, x, y, jax.random.key(0), 0.8).mean(), "accuracy": right.mean()}


def evaluate(params, x, y):
    """The reported metrics of a set, without dropout."""
    return {name: float(value) for name, value in jax.device_get(metrics(params, x, y)).items()}
