# ---
# kind: wrong
# trap: block_until_ready on each step, as a timing guide said
# fails: test_no_step_is_awaited
# hint: the same wait as float(loss)
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    """As `starving_epoch`, with at most two reads."""
    losses = []
    for x, y in batches:
        learned, loss = step(learned, x, y, rate)
        losses.append(jax.block_until_ready(loss))
    losses = np.array(jax.device_get(losses))
    best = np.minimum.accumulate(losses)
    for i in range(0, len(losses), 4):
        log(i, f"loss {losses[i]:.4f}, best {best[i]:.4f}")
    return learned, losses
