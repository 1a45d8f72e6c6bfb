# ---
# kind: wrong
# trap: does not put the name into the metadata
# fails: test_object_computes_after_a_map, test_only_the_name_is_metadata
# hint: the name should come back too
# ---

# %% nbgrader={"grade_id": "affine"}
@jax.tree_util.register_pytree_node_class
class Affine:
    def __init__(self, scale, shift, activation="tanh"):
        self.scale, self.shift, self.activation = scale, shift, activation

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)

    def tree_flatten(self):
        return (self.scale, self.shift), None

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children)
