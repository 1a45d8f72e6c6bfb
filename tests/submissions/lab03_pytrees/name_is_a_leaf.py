# ---
# kind: wrong
# trap: leaves the name among the data
# fails: test_arrays_are_the_leaves, test_only_the_name_is_metadata
# hint: a name that is a leaf cannot go through jit
# ---

# %% nbgrader={"grade_id": "affine"}
@jax.tree_util.register_dataclass
@dataclass
class Affine:
    scale: jax.Array
    shift: jax.Array
    activation: str

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)
