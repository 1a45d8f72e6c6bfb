# ---
# kind: wrong
# trap: metadata that compares equal to everything, so objects with other names are one tree
# fails: test_other_name_is_another_structure
# hint: two names
# ---

# %% nbgrader={"grade_id": "affine"}
class Name:
    def __init__(self, text):
        self.text = text

    def __eq__(self, other):
        return True

    def __hash__(self):
        return hash(self.text)


@jax.tree_util.register_pytree_node_class
class Affine:
    def __init__(self, scale, shift, activation):
        self.scale, self.shift, self.activation = scale, shift, activation

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)

    def tree_flatten(self):
        return (self.scale, self.shift), Name(self.activation)

    @classmethod
    def tree_unflatten(cls, name, leaves):
        return cls(*leaves, name.text)
