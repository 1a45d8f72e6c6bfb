# ---
# kind: wrong
# trap: clears everything when it is nine tenths full
# fails: test_kept_mask_is_not_decoded_again
# hint: nearly full
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
        if self.size() > 0.7 * self.budget:
            self.kept.clear()
        mask = self.decode(name)
        if self.size() + mask.nbytes <= self.budget:
            self.kept[name] = mask
        return mask

    def forget(self, name):
        self.kept.pop(name, None)
