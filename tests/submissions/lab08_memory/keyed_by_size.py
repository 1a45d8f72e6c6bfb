# ---
# kind: wrong
# trap: finds a mask by its size
# fails: test_right_mask_is_given
# hint: every name its own
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept = decode, budget, {}

    def size(self):
        return sum(mask.nbytes for mask in self.kept.values())

    def get(self, name):
        mask = self.decode(name)
        if mask.nbytes <= self.budget:
            while self.size() + mask.nbytes > self.budget:
                del self.kept[next(iter(self.kept))]
            mask = self.kept.setdefault(mask.nbytes, mask)
        return mask

    def forget(self, name):
        self.kept.pop(name, None)
