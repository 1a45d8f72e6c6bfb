# ---
# kind: wrong
# trap: a table of five activations
# fails: test_object_computes_after_a_map
# hint: any function of jnp
# ---

# %% nbgrader={"grade_id": "affine"}
from dataclasses import field

ACTIVATIONS = {"tanh": jnp.tanh, "sin": jnp.sin, "abs": jnp.abs, "negative": jnp.negative, "relu": jax.nn.relu}


@jax.tree_util.register_dataclass
@dataclass
class Affine:
    scale: jax.Array
    shift: jax.Array
    activation: str = field(metadata={"static": True})

    def __call__(self, x):
        return ACTIVATIONS[self.activation](self.scale * x + self.shift)
