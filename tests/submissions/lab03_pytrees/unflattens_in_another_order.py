# ---
# kind: wrong
# trap: puts the children back in another order
# fails: test_object_computes_after_a_map
# hint: should use one order
# ---

# %% nbgrader={"grade_id": "affine"}
@jax.tree_util.register_pytree_node_class
class Affine:
    def __init__(self, scale, shift, activation):
        self.scale, self.shift, self.activation = scale, shift, activation

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)

    def tree_flatten(self):
        return (self.scale, self.shift), self.activation

    @classmethod
    def tree_unflatten(cls, aux, children):
        return cls(*children[::-1], aux)
