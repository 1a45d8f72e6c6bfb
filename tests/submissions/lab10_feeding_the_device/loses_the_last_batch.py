# ---
# kind: wrong
# trap: ends when the thread has ended, with batches in the queue
# fails: test_every_batch_comes
# hint: All batches should come
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


# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, prepare))
    thread.start()
    try:
        while True:
            time.sleep(0.005)
            if not thread.is_alive():
                return
            try:
                batch, error = waiting.get(timeout=0.1)
            except queue.Empty:
                continue
            if error is not None:
                raise error
            if batch is END:
                return
            yield place(batch)
    finally:
        stop.set()
        thread.join()
