# ---
# kind: wrong
# trap: gives up the loss of the last batch
# fails: test_every_batch_is_a_step
# hint: the last one included
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    """As `starving_epoch`, with at most two reads."""
    losses = []
    for x, y in batches:
        learned, loss = step(learned, x, y, rate)
        losses.append(loss)
    losses = np.array(jax.device_get(losses))
    best = np.minimum.accumulate(losses)
    for i in range(0, len(losses), 4):
        log(i, f"loss {losses[i]:.4f}, best {best[i]:.4f}")
    return learned, losses[:-1]
