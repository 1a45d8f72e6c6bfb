# ---
# kind: wrong
# trap: a sync hidden in a line of log
# fails: test_epoch_reads_twice_at_most
# hint: an f-string or print
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    losses = []
    for i, (x, y) in enumerate(batches):
        learned, loss = step(learned, x, y, rate)
        losses.append(loss)
        if i % 4 == 0:
            best = np.min(jax.device_get(losses))
            log(i, f"loss {loss:.4f}, best {best:.4f}")
    return learned, np.array(jax.device_get(losses))
