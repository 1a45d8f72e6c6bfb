# ---
# kind: alternative
# about: geometric medians, results kept in a list and awaited together, a generator over leaves, float64 in the comparison
# ---

# %% nbgrader={"grade_id": "compare"}
import math


def compare(a, b, clock=time.perf_counter, rounds=21):
    finished(lambda: (a(), b()), clock)
    logs = []
    for _ in range(rounds):
        base, other = finished(a, clock), finished(b, clock)
        logs.append(math.log(other) - math.log(base))
    return math.exp(sorted(logs)[len(logs) // 2])


# %% nbgrader={"grade_id": "agree"}
def agree(a, b, rtol=1e-5):
    form = lambda tree: jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), tree)
    if form(a) != form(b):
        return False
    gaps = jax.tree.map(lambda left, right: np.abs(np.float64(left) - np.float64(right)).max(), a, b)
    limits = jax.tree.map(lambda left: rtol * np.abs(np.float64(left)).max(), a)
    return all(bool(gap <= limit) for gap, limit in zip(jax.tree.leaves(gaps), jax.tree.leaves(limits), strict=True))
