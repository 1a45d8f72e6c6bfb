# ---
# kind: wrong
# trap: each object makes a function of its own and has it as metadata
# fails: test_only_the_name_is_metadata
# hint: that each object makes for itself
# ---

# %% nbgrader={"grade_id": "affine"}
from dataclasses import field


@jax.tree_util.register_dataclass
@dataclass
class Parts:
    scale: jax.Array
    shift: jax.Array
    function: object = field(metadata={"static": True})
    activation: str = field(metadata={"static": True})

    def __call__(self, x):
        return self.function(self.scale * x + self.shift)


def Affine(scale, shift, activation):
    return Parts(scale, shift, lambda v: getattr(jnp, activation)(v), activation)
