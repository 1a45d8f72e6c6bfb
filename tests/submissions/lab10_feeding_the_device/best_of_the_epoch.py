# ---
# kind: wrong
# trap: writes the smallest loss of the whole epoch into each line
# fails: test_log_has_the_same_lines
# hint: not of the whole epoch
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    """As `starving_epoch`, with at most two reads."""
    losses = []
    for x, y in batches:
        learned, loss = step(learned, x, y, rate)
        losses.append(loss)
    losses = np.array(jax.device_get(losses))
    best = np.full(len(losses), losses.min())
    for i in range(0, len(losses), 4):
        log(i, f"loss {losses[i]:.4f}, best {best[i]:.4f}")
    return learned, losses
