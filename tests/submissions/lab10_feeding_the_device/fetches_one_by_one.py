# ---
# kind: wrong
# trap: fetches the losses at the end, one at a time
# fails: test_epoch_reads_twice_at_most
# hint: np.array or sum over a list
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    """As `starving_epoch`, with at most two reads."""
    losses = []
    for x, y in batches:
        learned, loss = step(learned, x, y, rate)
        losses.append(loss)
    losses = np.array([float(loss) for loss in losses])
    best = np.minimum.accumulate(losses)
    for i in range(0, len(losses), 4):
        log(i, f"loss {losses[i]:.4f}, best {best[i]:.4f}")
    return learned, losses
