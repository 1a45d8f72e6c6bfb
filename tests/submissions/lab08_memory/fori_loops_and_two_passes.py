# ---
# kind: alternative
# about: fori_loop over slices with the overlap masked, two passes over the keys, a list in order of asking, bisect from the library
# ---

# %% nbgrader={"grade_id": "normal_equations"}
def normal_equations(network, x, y, strength):
    n, size = x.shape[0], 100

    def turn(number, sums):
        begin = jnp.minimum(number * size, n - size)
        f = features(network, jax.lax.dynamic_slice_in_dim(x, begin, size))
        f = jnp.where((begin + jnp.arange(size) >= number * size)[:, None], f, 0)
        targets = jax.lax.dynamic_slice_in_dim(y, begin, size)
        return sums[0] + jnp.einsum("ri,rj->ij", f, f), sums[1] + targets @ f

    gram, moment = jax.lax.fori_loop(0, -(-n // size), turn, (jnp.zeros((128, 128)), jnp.zeros(128)))
    return gram.at[jnp.diag_indices(128)].add(strength), moment

# %% nbgrader={"grade_id": "spread"}
def spread(network, x, keys):
    n = keys.shape[0]

    def total(function):
        def turn(number, so_far):
            return so_far + function(noisy_score(network, x, keys[number]))

        return jax.lax.fori_loop(0, n, turn, jnp.zeros(x.shape[0]))

    mean = total(lambda score: score / n)
    return mean, total(lambda score: (score - mean) ** 2) / (n - 1)

# %% nbgrader={"grade_id": "pack"}
import io


def pack(scores, threshold):
    mask = np.greater(scores, threshold)
    bits = np.append(mask, np.zeros(-mask.size % 8, bool)).reshape(-1, 8)
    return zlib.compress((bits << np.arange(8)).sum(axis=1).astype("uint8").tobytes(), level=9)


def unpack(packed, shape):
    octets = np.frombuffer(zlib.decompress(packed), "uint8")
    bits = (octets[:, None] >> np.arange(8)) & 1
    return (bits.ravel()[: np.prod(shape)] > 0).reshape(shape)

# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    return list(map(lambda frame: pack(frame, threshold), stream))

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept, self.asked, self.now = decode, budget, {}, {}, 0

    def get(self, name):
        self.now += 1
        if name not in self.kept:
            mask = self.decode(name)
            if mask.nbytes > self.budget:
                return mask
            while mask.nbytes + sum(other.nbytes for other in self.kept.values()) > self.budget:
                self.forget(min(self.asked, key=self.asked.get))
            self.kept[name] = mask
        self.asked[name] = self.now
        return self.kept[name]

    def forget(self, name):
        for table in (self.kept, self.asked):
            table.pop(name, None)

# %% nbgrader={"grade_id": "largest_chunk"}
import bisect


def largest_chunk(start, n, budget_mb):
    def too_much(chunk):
        process = start()
        process.run(chunk)
        return process.returncode is not None or process.peak_mb > budget_mb

    first = bisect.bisect_left(range(1, n + 1), True, key=too_much)
    if first == 0:
        raise ValueError("not even one")
    return first
