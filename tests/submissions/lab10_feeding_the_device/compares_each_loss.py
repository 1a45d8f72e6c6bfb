# ---
# kind: wrong
# trap: min() on a device value in each step
# fails: test_epoch_reads_twice_at_most
# hint: min() or if on a loss
# ---

# %% nbgrader={"grade_id": "train_epoch"}
def train_epoch(learned, batches, rate, log):
    losses, best, bests = [], float("inf"), []
    for x, y in batches:
        learned, loss = step(learned, x, y, rate)
        best = min(best, loss)
        losses.append(loss)
        bests.append(best)
    losses, bests = jax.device_get((losses, bests))
    for i in range(0, len(losses), 4):
        log(i, f"loss {losses[i]:.4f}, best {bests[i]:.4f}")
    return learned, np.array(losses)
