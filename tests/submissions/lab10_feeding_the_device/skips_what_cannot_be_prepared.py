# ---
# kind: wrong
# trap: leaves out items whose prepare raises
# fails: test_error_in_prepare_surfaces
# hint: stand in the same try
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
            try:
                batch = prepare(item)
            except Exception:
                continue
            offer(batch)
            if stop.is_set():
                return
        offer(END)
    except Exception as error:  # noqa: BLE001  it is raised on the other side
        offer(END, error)
