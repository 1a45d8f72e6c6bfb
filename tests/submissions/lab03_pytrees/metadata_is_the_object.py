# ---
# kind: wrong
# trap: takes the whole object for metadata
# fails: test_only_the_name_is_metadata
# hint: Only the name should be compared
# ---

# %% nbgrader={"grade_id": "affine"}
@jax.tree_util.register_pytree_node_class
class Affine:
    def __init__(self, scale, shift, activation):
        self.scale, self.shift, self.activation = scale, shift, activation

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)

    def tree_flatten(self):
        return (self.scale, self.shift), self

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children, aux.activation)
