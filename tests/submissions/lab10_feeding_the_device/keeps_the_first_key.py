# ---
# kind: wrong
# trap: hands the key back that came in
# fails: test_every_batch_is_a_step
# hint: the key too
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    """As `starving_epoch`, with at most two reads."""
    losses, key = [], learned["key"]
    for x, y in batches:
        learned, loss = step(learned, x, y, rate)
        losses.append(loss)
    losses = np.array(jax.device_get(losses))
    best = np.minimum.accumulate(losses)
    for i in range(0, len(losses), 4):
        log(i, f"loss {losses[i]:.4f}, best {best[i]:.4f}")
    return learned | {"key": key}, losses
