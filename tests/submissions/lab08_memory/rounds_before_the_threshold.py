# ---
# kind: wrong
# trap: rounds scores to 256 steps before it compares
# fails: test_threshold_is_strict
# hint: rounded to uint8
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return zlib.compress(np.packbits(np.round(scores * 255) > threshold * 255))


def unpack(packed, shape):
    bits = np.frombuffer(zlib.decompress(packed), "uint8")
    return np.unpackbits(bits, count=shape[0] * shape[1]).reshape(shape).astype(bool)
