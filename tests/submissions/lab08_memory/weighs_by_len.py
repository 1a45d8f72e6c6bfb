# ---
# kind: wrong
# trap: weighs a mask by its len, which is its rows
# fails: test_kept_bytes_stay_within_the_budget
# hint: len(mask) is its rows
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    """Decoded masks, at most `budget` bytes of them."""

    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept = decode, budget, {}

    def get(self, name):
        mask = self.kept[name] if name in self.kept else self.decode(name)
        self.forget(name)
        if len(mask) <= self.budget:
            while sum(len(kept) for kept in self.kept.values()) + len(mask) > self.budget:
                self.forget(next(iter(self.kept)))
            self.kept[name] = mask
        return mask

    def forget(self, name):
        self.kept.pop(name, None)
