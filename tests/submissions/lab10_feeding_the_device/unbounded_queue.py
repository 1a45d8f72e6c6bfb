# ---
# kind: wrong
# trap: a queue without a bound
# fails: test_queue_has_its_bound
# hint: queue.Queue() without a bound
# ---

# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, prepare))
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
        thread.join()
