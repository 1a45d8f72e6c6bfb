# ---
# kind: wrong
# trap: does not register the class
# fails: test_arrays_are_the_leaves, test_object_computes_after_a_map, test_only_the_name_is_metadata, test_constructor_takes_any_leaf
# hint: An unregistered class is one leaf
# ---

# %% nbgrader={"grade_id": "affine"}
class Affine:
    def __init__(self, scale, shift, activation):
        self.scale, self.shift, self.activation = scale, shift, activation

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)
