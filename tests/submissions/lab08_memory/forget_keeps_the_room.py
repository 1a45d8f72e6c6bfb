# ---
# kind: wrong
# trap: forget drops the mask, and counts its bytes still
# fails: test_forgotten_mask_is_decoded_anew
# hint: room of the old mask
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept, self.bytes = decode, budget, {}, 0

    def get(self, name):
        if name in self.kept:
            self.kept[name] = self.kept.pop(name)
            return self.kept[name]
        mask = self.decode(name)
        if mask.nbytes <= self.budget:
            while self.kept and self.bytes + mask.nbytes > self.budget:
                self.bytes -= self.kept.pop(next(iter(self.kept))).nbytes
            self.kept[name] = mask
            self.bytes += mask.nbytes
        return mask

    def forget(self, name):
        self.kept.pop(name, None)
