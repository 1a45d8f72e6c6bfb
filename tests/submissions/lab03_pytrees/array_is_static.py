# ---
# kind: wrong
# trap: makes the scale static
# fails: test_arrays_are_the_leaves, test_object_computes_after_a_map, test_only_the_name_is_metadata
# hint: a static array is none
# ---

# %% nbgrader={"grade_id": "affine"}
from dataclasses import field


@jax.tree_util.register_dataclass
@dataclass
class Affine:
    scale: jax.Array = field(metadata={"static": True})
    shift: jax.Array
    activation: str = field(metadata={"static": True})

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)
