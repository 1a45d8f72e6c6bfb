# ---
# kind: wrong
# trap: hands on an OSError, and no other error
# fails: test_error_in_prepare_surfaces
# hint: an except for one kind of error
# ---

# %% nbgrader={"grade_id": "fill"}
def fill(waiting, stop, source, prepare):
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
    except OSError as error:
        offer(END, error)
