# ---
# kind: wrong
# trap: takes batches of eight, whatever size it is given
# fails: test_other_numbers_of_rows_compile_nothing
# hint: batches of `size` rows
# ---

# %% nbgrader={"grade_id": "evaluate"}
def evaluate(params, x, y, size):
    size = 8
    loss = right = 0.0
    for start in range(0, len(x), size):
        rows, targets = x[start : start + size], y[start : start + size]
        n = len(rows)
        rows, targets = np.pad(rows, ((0, size - n), (0, 0))), np.pad(targets, (0, size - n))
        row_loss, row_right = row_results(params, rows, targets)
        loss += float(np.asarray(row_loss)[:n].sum())
        right += int(np.asarray(row_right)[:n].sum())
    return {"loss": loss / len(x), "accuracy": right / len(x)}
