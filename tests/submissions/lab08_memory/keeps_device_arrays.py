# ---
# kind: wrong
# trap: keeps a list of device arrays
# fails: test_stream_is_not_held
# hint: of device arrays
# ---

# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    on_device = [jnp.asarray(frame) for frame in stream]
    return [pack(np.asarray(frame), threshold) for frame in on_device]
