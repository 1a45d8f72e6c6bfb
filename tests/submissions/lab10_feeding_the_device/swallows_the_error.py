# ---
# kind: wrong
# trap: an error in the worker ends the epoch in silence
# fails: test_error_surfaces, test_error_in_prepare_surfaces
# hint: raised nowhere
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
        offer(END)
    except Exception:
        offer(END)
