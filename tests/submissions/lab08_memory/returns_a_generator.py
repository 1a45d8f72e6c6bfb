# ---
# kind: wrong
# trap: returns a generator: the list is never made
# fails: test_stream_is_packed_in_order
# hint: a packed mask for each frame
# ---

# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    return (pack(frame, threshold) for frame in stream)
