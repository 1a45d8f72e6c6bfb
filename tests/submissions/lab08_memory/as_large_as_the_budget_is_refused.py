# ---
# kind: wrong
# trap: keeps what is smaller than the budget alone
# fails: test_too_large_mask_drops_nothing
# hint: exactly the budget
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept = decode, budget, {}

    def size(self):
        return sum(mask.nbytes for mask in self.kept.values())

    def get(self, name):
        if name in self.kept:
            self.kept[name] = self.kept.pop(name)
            return self.kept[name]
        mask = self.decode(name)
        if mask.nbytes < self.budget:
            while self.size() + mask.nbytes > self.budget:
                del self.kept[next(iter(self.kept))]
            self.kept[name] = mask
        return mask

    def forget(self, name):
        self.kept.pop(name, None)
