# ---
# kind: wrong
# trap: makes a list of the stream first
# fails: test_stream_is_not_held
# hint: A list of
# ---

# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    return [pack(frame, threshold) for frame in list(stream)]
