# ---
# kind: wrong
# trap: the thread hangs in put when the loop was left
# fails: test_thread_ends_early
# hint: put on a full queue
# ---

# %% nbgrader={"grade_id": "fill"}
def fill(waiting, stop, source, prepare):
    """Put (batch, None) for each item, then (END, None); or (END, error). Leave when `stop` is set."""

    def offer(batch, error=None):
        waiting.put((batch, error))

    try:
        for item in source:
            offer(prepare(item))
            if stop.is_set():
                return
        offer(END)
    except Exception as error:  # noqa: BLE001  it is raised on the other side
        offer(END, error)


# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, prepare), daemon=True)
    thread.start()
    try:
        while True:
            batch, error = waiting.get()
            if error is not None:
                raise error
            if batch is END:
                return
            yield place(batch)
    finally:
        stop.set()
