# ---
# kind: wrong
# trap: a dict that keeps everything
# fails: test_kept_bytes_stay_within_the_budget
# hint: A dict without a bound
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept = decode, budget, {}

    def size(self):
        return sum(mask.nbytes for mask in self.kept.values())

    def get(self, name):
        if name not in self.kept:
            self.kept[name] = self.decode(name)
        return self.kept[name]

    def forget(self, name):
        self.kept.pop(name, None)
