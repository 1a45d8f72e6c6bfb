# ---
# kind: wrong
# trap: converts its arguments to arrays in the constructor
# fails: test_constructor_takes_any_leaf
# hint: whose fields are shapes
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
        self.scale, self.shift = jnp.asarray(self.scale), jnp.asarray(self.shift)

    def __call__(self, x):
        return getattr(jnp, self.activation)(self.scale * x + self.shift)
