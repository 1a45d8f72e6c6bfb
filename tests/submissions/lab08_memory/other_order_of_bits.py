# ---
# kind: wrong
# trap: packs little-endian bits and unpacks big-endian ones
# fails: test_mask_comes_back
# hint: the order of bits
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return zlib.compress(np.packbits(scores > threshold, bitorder="little"))


def unpack(packed, shape):
    bits = np.frombuffer(zlib.decompress(packed), "uint8")
    return np.unpackbits(bits, count=shape[0] * shape[1]).reshape(shape).astype(bool)
