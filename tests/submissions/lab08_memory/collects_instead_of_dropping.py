# ---
# kind: wrong
# trap: collects garbage when the budget is passed, and drops nothing
# fails: test_kept_bytes_stay_within_the_budget
# hint: gc.collect() drops nothing
# ---

# %% nbgrader={"grade_id": "mask_cache"}
import gc


class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept = decode, budget, {}

    def size(self):
        return sum(mask.nbytes for mask in self.kept.values())

    def get(self, name):
        if name not in self.kept:
            self.kept[name] = self.decode(name)
        if self.size() > self.budget:
            gc.collect()
        return self.kept[name]

    def forget(self, name):
        self.kept.pop(name, None)
