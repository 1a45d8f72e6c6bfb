# ---
# kind: wrong
# trap: decodes on every get
# fails: test_kept_mask_is_not_decoded_again
# hint: decoded once
# ---

# %% nbgrader={"grade_id": "mask_cache"}
class MaskCache:
    def __init__(self, decode, budget):
        self.get = decode

    def forget(self, name):
        pass
