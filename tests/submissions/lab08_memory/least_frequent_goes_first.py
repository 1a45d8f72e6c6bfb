# ---
# kind: wrong
# trap: drops the mask that was asked for least often
# fails: test_longest_unasked_goes_first
# hint: should move to the end
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    """The least frequently used goes first."""

    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept, self.asked = decode, budget, {}, {}

    def get(self, name):
        self.asked[name] = self.asked.get(name, 0) + 1
        if name in self.kept:
            return self.kept[name]
        mask = self.decode(name)
        if mask.nbytes <= self.budget:
            while sum(kept.nbytes for kept in self.kept.values()) + mask.nbytes > self.budget:
                self.forget(min(self.kept, key=self.asked.get))
            self.kept[name] = mask
        return mask

    def forget(self, name):
        self.kept.pop(name, None)
