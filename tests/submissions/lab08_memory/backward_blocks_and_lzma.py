# ---
# kind: alternative
# about: blocks that end at the last row, two passes over the keys, raw lzma
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    """Blocks end at the last row; a row that an earlier block has is weighted 0."""
    n = x.shape[0]
    size = min(256, n)
    count = -(-n // size)

    def add(i, sums):
        begin = jnp.minimum(i * size, n - size)
        weight = (begin + jnp.arange(size) >= i * size).astype(jnp.float32)
        f = features(network, jax.lax.dynamic_slice_in_dim(x, begin, size))
        weighted = f * weight[:, None]
        return sums[0] + weighted.T @ f, sums[1] + weighted.T @ jax.lax.dynamic_slice_in_dim(y, begin, size)

    gram, moment = jax.lax.fori_loop(0, count, add, (jnp.zeros((128, 128)), jnp.zeros(128)))
    return gram + strength * jnp.identity(128), moment


# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    """The mean first, the squared distances after, each key computed twice."""
    count = keys.shape[0]
    score = lambda key: noisy_score(network, x, key)
    mean = jax.lax.fori_loop(0, count, lambda i, total: total + score(keys[i]), jnp.zeros(x.shape[0])) / count
    squares = jax.lax.fori_loop(0, count, lambda i, total: total + (score(keys[i]) - mean) ** 2, jnp.zeros(x.shape[0]))
    return [mean, squares / (count - 1)]


# %% nbgrader={"grade_id": "pack"}
import lzma


def pack(scores, threshold):
    bits = np.packbits(scores > threshold, bitorder="little").tobytes()
    return lzma.compress(bits, format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}])


def unpack(packed, shape):
    bits = lzma.decompress(packed, format=lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA2}])
    return (
        np.unpackbits(np.frombuffer(bits, np.uint8), count=int(np.prod(shape)), bitorder="little").reshape(shape) != 0
    )
