# ---
# kind: wrong
# trap: packs row by row, and cuts what was filled up at the end of all
# fails: test_mask_comes_back
# hint: cut off at the same place
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return zlib.compress(np.packbits(scores > threshold, axis=1))


def unpack(packed, shape):
    bits = np.frombuffer(zlib.decompress(packed), "uint8")
    return np.unpackbits(bits, count=shape[0] * shape[1]).reshape(shape).astype(bool)
