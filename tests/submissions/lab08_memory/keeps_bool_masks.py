# ---
# kind: wrong
# trap: holds a bool mask of every frame, and packs at the end
# fails: test_stream_is_not_held
# hint: of unpacked masks
# ---

# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    masks = [frame > threshold for frame in stream]
    return [pack(mask, False) for mask in masks]
