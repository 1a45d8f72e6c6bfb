# ---
# kind: wrong
# trap: packs in groups of five, and drops the last group
# fails: test_stream_is_packed_in_order
# hint: the last as well
# ---

# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    packed, group = [], []
    for frame in stream:
        group.append(frame)
        if len(group) == 5:
            packed += [pack(one, threshold) for one in group]
            group = []
    return packed
