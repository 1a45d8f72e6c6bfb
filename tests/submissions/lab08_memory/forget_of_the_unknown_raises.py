# ---
# kind: wrong
# trap: forget raises for a mask that is not kept
# fails: test_forgotten_mask_is_decoded_anew
# hint: should be no error
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
        if mask.nbytes <= self.budget:
            while self.size() + mask.nbytes > self.budget:
                del self.kept[next(iter(self.kept))]
            self.kept[name] = mask
        return mask

    def forget(self, name):
        del self.kept[name]
