# ---
# kind: wrong
# trap: takes pixels at the threshold
# fails: test_threshold_is_strict
# hint: exactly at the threshold
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return zlib.compress(np.packbits(scores >= threshold))


def unpack(packed, shape):
    bits = np.frombuffer(zlib.decompress(packed), "uint8")
    return np.unpackbits(bits, count=shape[0] * shape[1]).reshape(shape).astype(bool)
