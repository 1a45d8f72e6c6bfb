# ---
# kind: wrong
# trap: checks shapes in the constructor
# fails: test_constructor_takes_any_leaf
# hint: A constructor that checks or converts
# ---

# %% nbgrader={"grade_id": "affine"}
from dataclasses import field


@jax.tree_util.register_dataclass
@dataclass
class Affine:
    scale: jax.Array
    shift: jax.Array
    activation: str = field(metadata={"static": True})

    def __post_init__(self):
        if self.scale.shape != self.shift.shape:
            raise ValueError("scale and shift must have one shape")

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)
