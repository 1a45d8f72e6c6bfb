# ---
# kind: wrong
# trap: counts a mask at every get, so that it drops what had room
# fails: test_kept_mask_is_not_decoded_again
# hint: counted twice
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.decode, self.budget, self.kept, self.bytes = decode, budget, {}, 0

    def get(self, name):
        mask = self.kept.pop(name) if name in self.kept else self.decode(name)
        if mask.nbytes <= self.budget:
            while self.kept and self.bytes + mask.nbytes > self.budget:
                self.bytes -= self.kept.pop(next(iter(self.kept))).nbytes
            self.kept[name] = mask
            self.bytes += mask.nbytes
        return mask

    def forget(self, name):
        if name in self.kept:
            self.bytes -= self.kept.pop(name).nbytes
