# ---
# kind: wrong
# trap: raises as soon as there is an error, and drops the batches before it
# fails: test_error_surfaces
# hint: After the batches before it
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
    except Exception as error:  # noqa: BLE001  it is raised on the other side
        stop.failed = error
        offer(END, error)


# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, prepare))
    thread.start()
    try:
        while True:
            batch, error = waiting.get()
            error = getattr(stop, "failed", error)
            if error is not None:
                raise error
            if batch is END:
                return
            yield place(batch)
    finally:
        stop.set()
        thread.join()
