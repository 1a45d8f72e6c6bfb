# ---
# kind: wrong
# trap: lru_cache, which counts masks and not bytes
# fails: test_kept_bytes_stay_within_the_budget
# hint: a bound on the number
# ---

# %% nbgrader={"grade_id": "mask_cache"}
import functools


class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.get = decode, functools.lru_cache(maxsize=6)(decode)

    def forget(self, name):
        self.get.cache_clear()
