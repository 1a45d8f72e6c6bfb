# ---
# kind: wrong
# trap: drops masks from the order, and keeps them in a second dict
# fails: test_kept_bytes_stay_within_the_budget
# hint: held nowhere else
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept, self.all = decode, budget, {}, {}

    def size(self):
        return sum(mask.nbytes for mask in self.kept.values())

    def get(self, name):
        if name not in self.all:
            self.all[name] = self.decode(name)
        mask = self.kept.pop(name, self.all[name])
        if mask.nbytes <= self.budget:
            while self.size() + mask.nbytes > self.budget:
                del self.kept[next(iter(self.kept))]
            self.kept[name] = mask
        return mask

    def forget(self, name):
        self.kept.pop(name, None)
        self.all.pop(name, None)
