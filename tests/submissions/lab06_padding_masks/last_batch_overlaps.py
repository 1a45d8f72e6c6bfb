# ---
# kind: wrong
# trap: takes the last `size` rows for the last batch, where there may be fewer
# fails: test_other_numbers_of_rows_compile_nothing
# hint: fewer rows than one batch
# ---

# %% nbgrader={"grade_id": "evaluate"}
def evaluate(params, x, y, size):
    loss = right = 0.0
    for start in range(0, len(x), size):
        end = min(start + size, len(x))
        row_loss, row_right = row_results(params, x[max(0, end - size) : end], y[max(0, end - size) : end])
        new = end - start
        loss += float(np.asarray(row_loss)[-new:].sum())
        right += int(np.asarray(row_right)[-new:].sum())
    return {"loss": loss / len(x), "accuracy": right / len(x)}
