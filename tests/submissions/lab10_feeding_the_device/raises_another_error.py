# ---
# kind: wrong
# trap: raises an error of its own in place of the source's
# fails: test_error_surfaces
# hint: the source's own error
# ---

# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, prepare))
    thread.start()
    try:
        while True:
            batch, error = waiting.get()
            if error is not None:
                raise RuntimeError("the worker failed")
            if batch is END:
                return
            yield place(batch)
    finally:
        stop.set()
        thread.join()
