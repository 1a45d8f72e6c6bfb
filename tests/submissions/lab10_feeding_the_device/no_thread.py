# ---
# kind: wrong
# trap: a generator that reads when it is asked
# fails: test_worker_reads_and_prepares, test_queue_has_its_bound
# hint: reads nothing ahead
# ---

# %% nbgrader={"grade_id": "prefetch"}
def prefetch(source, prepare, place, ready=2):
    for item in source:
        yield place(prepare(item))
