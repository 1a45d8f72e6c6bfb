# ---
# kind: wrong
# trap: compresses a byte for each pixel
# fails: test_bytes_stay_in_the_budget
# hint: pack the bits
# ---

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return zlib.compress(scores > threshold)


def unpack(packed, shape):
    bits = np.frombuffer(zlib.decompress(packed), "uint8")
    return bits.reshape(shape).astype(bool)
