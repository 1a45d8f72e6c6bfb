# ---
# kind: wrong
# trap: gives 0 and 1 back, and no bool
# fails: test_mask_comes_back
# hint: for bool
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return zlib.compress(np.packbits(scores > threshold))


def unpack(packed, shape):
    bits = np.frombuffer(zlib.decompress(packed), "uint8")
    return np.unpackbits(bits, count=shape[0] * shape[1]).reshape(shape)
