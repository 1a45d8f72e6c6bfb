# ---
# kind: wrong
# trap: a bound that is written into the code
# fails: test_queue_has_its_bound
# hint: not the one that was asked for
# ---

# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(2), threading.Event()
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
