# ---
# kind: wrong
# trap: the thread reads, and the main thread prepares
# fails: test_worker_reads_and_prepares
# hint: prepare called, in one thread
# ---

# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, lambda item: item))
    thread.start()
    try:
        while True:
            batch, error = waiting.get()
            if error is not None:
                raise error
            if batch is END:
                return
            yield place(prepare(batch))
    finally:
        stop.set()
        thread.join()
