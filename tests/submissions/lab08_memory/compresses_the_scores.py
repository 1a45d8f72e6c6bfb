# ---
# kind: wrong
# trap: keeps the scores, and compares when it unpacks
# fails: test_bytes_stay_in_the_budget
# hint: compressed scores
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return np.float32(threshold).tobytes() + zlib.compress(scores.astype("float32"))


def unpack(packed, shape):
    threshold, scores = np.frombuffer(packed[:4], "float32"), np.frombuffer(zlib.decompress(packed[4:]), "float32")
    return scores.reshape(shape) > threshold
