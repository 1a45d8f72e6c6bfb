# ---
# kind: wrong
# trap: bits, not compressed
# fails: test_bytes_stay_in_the_budget
# hint: bits alone take
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return np.packbits(scores > threshold).tobytes()


def unpack(packed, shape):
    bits = np.frombuffer(packed, "uint8")
    return np.unpackbits(bits, count=shape[0] * shape[1]).reshape(shape).astype(bool)
