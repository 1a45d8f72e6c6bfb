# ---
# kind: wrong
# trap: device_put in the worker thread
# fails: test_jax_stays_with_the_taker
# hint: JAX does not see the settings
# ---

# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    """Yield place(prepare(item)) for each item; source and prepare run ahead in a thread."""
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, lambda item: place(prepare(item))))
    thread.start()
    try:
        while True:
            batch, error = waiting.get()
            if error is not None:
                raise error
            if batch is END:
                return
            yield batch
    finally:
        stop.set()
        thread.join()
