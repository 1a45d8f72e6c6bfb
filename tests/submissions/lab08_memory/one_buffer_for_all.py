# ---
# kind: wrong
# trap: decodes into the buffer of the mask that is dropped, and forgets to rename it
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
        if name not in self.kept:
            mask = self.decode(name)
            while self.kept and self.size() + mask.nbytes > self.budget:
                last = self.kept.pop(next(iter(self.kept)))
                mask = last if last.nbytes == mask.nbytes else mask
            self.kept[name] = mask
        return self.kept[name]

    def forget(self, name):
        self.kept.pop(name, None)
