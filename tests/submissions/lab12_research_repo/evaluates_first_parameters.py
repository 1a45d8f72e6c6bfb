# ---
# kind: wrong
# trap: the compiled evaluation holds the first parameters
# fails: test_evaluate_gives_the_same_numbers
# hint: The mean cross entropy
# ---

# %% nbgrader={"grade_id": "evaluate"}
# digitnet/evaluate.py
first = []


@jax.jit
def metrics(x, y):
    right = scores(first[0], x).argmax(axis=1) == y
    return {"loss": row_losses(first[0], x, y).mean(), "accuracy": right.mean()}


def evaluate(params, x, y):
    first[:] = [params]
    return {name: float(value) for name, value in metrics(x, y).items()}
