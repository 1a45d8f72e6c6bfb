# ---
# kind: alternative
# about: padding with a mask over the features, lax.map in chunks, rows packed apart, OrderedDict, an upward search
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    n, more = len(x), -len(x) % 128
    counts = (jnp.arange(n + more) < n).astype("float32").reshape(-1, 128)
    blocks = jnp.pad(x, ((0, more), (0, 0))).reshape(-1, 128, 16), jnp.pad(y, (0, more)).reshape(-1, 128), counts

    def add(sums, block):
        f = features(network, block[0]) * block[2][:, None]
        return (sums[0] + f.T @ f, sums[1] + f.T @ block[1]), None

    return jax.lax.scan(add, (strength * jnp.eye(128), jnp.zeros(128)), blocks)[0]

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), keys, batch_size=8)
    return scores.mean(axis=0), scores.var(axis=0, ddof=1)

# %% nbgrader={"grade_id": "pack"}
def pack(scores, threshold):
    return zlib.compress(np.packbits(scores > threshold, axis=1), 9)


def unpack(packed, shape):
    bits = np.frombuffer(zlib.decompress(packed), "uint8").reshape(shape[0], -1)
    return np.unpackbits(bits, axis=1, count=shape[1]) == 1

# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    packed = []
    for frame in stream:
        above = np.asarray(jnp.asarray(frame) > threshold)
        packed.append(pack(above, False))
    return packed

# %% nbgrader={"grade_id": "mask_cache"}
from collections import OrderedDict


class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.room, self.budget, self.kept = decode, budget, budget, OrderedDict()

    def get(self, name):
        if name in self.kept:
            self.kept.move_to_end(name)
            return self.kept[name]
        mask = self.decode(name)
        if mask.nbytes > self.budget:
            return mask
        self.room -= mask.nbytes
        self.kept[name] = mask
        while self.room < 0:
            _, gone = self.kept.popitem(last=False)
            self.room += gone.nbytes
        return mask

    def forget(self, name):
        if name in self.kept:
            self.room += self.kept.pop(name).nbytes

# %% nbgrader={"grade_id": "largest_chunk"}
def largest_chunk(start, n, budget_mb):
    def fits(chunk):
        process = start()
        process.run(chunk)
        return chunk if process.returncode is None and process.peak_mb <= budget_mb else 0

    best = 0
    for step in [2**power for power in reversed(range(n.bit_length()))]:
        if best + step <= n:
            best = fits(best + step) or best
    if not best:
        raise ValueError(f"a chunk of 1 is over {budget_mb} MB")
    return best
