# ---
# kind: wrong
# trap: the thread ends, and nobody is told
# fails: test_every_batch_comes
# hint: without a mark
# ---

# %% nbgrader={"grade_id": "fill"}
def fill(waiting, stop, source, prepare):
    """Put (batch, None) for each item, then (END, None); or (END, error). Leave when `stop` is set."""

    def offer(batch, error=None):
        while not stop.is_set():
            with contextlib.suppress(queue.Full):
                return waiting.put((batch, error), timeout=0.02)

    try:
        for item in source:
            offer(prepare(item))
            if stop.is_set():
                return
    except Exception as error:  # noqa: BLE001  it is raised on the other side
        offer(END, error)
