# ---
# kind: wrong
# trap: an exception ends the worker, and the main thread waits for ever
# fails: test_error_surfaces
# hint: catch it in the thread
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
    except ZeroDivisionError as error:
        offer(END, error)
