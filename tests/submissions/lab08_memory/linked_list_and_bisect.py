# ---
# kind: alternative
# about: a NamedTuple, a doubly linked list, map, bisect over a range
# ---

# %% nbgrader={"grade_id": "spread"}
from typing import NamedTuple


class Spread(NamedTuple):
    mean: jax.Array
    variance: jax.Array


def spread(network, x, keys):
    scores = jax.lax.map(lambda key: noisy_score(network, x, key), keys, batch_size=8)
    return Spread(scores.mean(axis=0), scores.var(axis=0, ddof=1))


# %% nbgrader={"grade_id": "mask_cache"}
class Node:
    def __init__(self, name, mask):
        self.name, self.mask, self.older, self.younger = name, mask, None, None


class MaskCache:
    """A doubly linked list, as in the textbook."""

    def __init__(self, decode, budget):
        self.decode, self.budget, self.used, self.nodes = decode, budget, 0, {}
        self.oldest, self.youngest = Node(None, None), Node(None, None)
        self.oldest.younger, self.youngest.older = self.youngest, self.oldest

    def get(self, name):
        node = self.nodes.get(name)
        if node is not None:
            mask = node.mask
            self.forget(name)
        else:
            mask = self.decode(name)
        if mask.nbytes > self.budget:
            return mask
        while self.used + mask.nbytes > self.budget:
            self.forget(self.oldest.younger.name)
        node = Node(name, mask)
        node.older, node.younger = self.youngest.older, self.youngest
        node.older.younger = node.younger.older = node
        self.nodes[name] = node
        self.used += mask.nbytes
        return mask

    def forget(self, name):
        node = self.nodes.pop(name, None)
        if node is not None:
            node.older.younger, node.younger.older = node.younger, node.older
            self.used -= node.mask.nbytes


# %% nbgrader={"grade_id": "pack_all"}
def pack_all(stream, threshold):
    packed = []
    packed.extend(map(lambda frame: pack(frame, threshold), stream))
    return packed


# %% nbgrader={"grade_id": "largest_chunk"}
import bisect


def largest_chunk(start, n, budget_mb):
    def too_much(chunk):
        process = start()
        process.run(chunk)
        return process.returncode is not None or process.peak_mb > budget_mb

    chunk = bisect.bisect_left(range(1, n + 1), True, key=too_much)
    if not chunk:
        raise ValueError("nothing fits")
    return chunk
