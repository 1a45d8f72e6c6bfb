# ---
# kind: wrong
# trap: reads the rest of the source when nobody takes any more
# fails: test_thread_ends_early
# hint: and no more be read
# ---

# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    waiting, stop = queue.Queue(ready), threading.Event()
    thread = threading.Thread(target=fill, args=(waiting, stop, source, prepare))
    thread.start()
    ended = False
    try:
        while True:
            batch, error = waiting.get()
            ended = error is not None or batch is END
            if error is not None:
                raise error
            if ended:
                return
            yield place(batch)
    finally:
        while not ended:  # let the thread come to its end
            batch, error = waiting.get()
            ended = error is not None or batch is END
        thread.join()
