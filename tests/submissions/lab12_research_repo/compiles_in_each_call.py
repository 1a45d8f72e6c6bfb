# ---
# kind: wrong
# trap: compiles the evaluation anew in each call
# fails: test_evaluate_is_compiled
# hint: outside of the function
# ---

# %% nbgrader={"grade_id": "evaluate"}
# digitnet/evaluate.py
def evaluate(params, x, y):

    @jax.jit
    def metrics(params, x, y):
        right = scores(params, x).argmax(axis=1) == y
        return {"loss": row_losses(params, x, y).mean(), "accuracy": right.mean()}

    return {name: float(value) for name, value in metrics(params, x, y).items()}
