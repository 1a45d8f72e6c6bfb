# ---
# kind: alternative
# about: named tuples for what comes back, helpers in the same cell
# ---

# %% nbgrader={"grade_id": "sgd_step"}
from typing import NamedTuple


class Step(NamedTuple):
    params: dict
    metrics: dict


def sgd_step(params, x, y, lr):
    loss, grads = jax.value_and_grad(mse)(params, x, y)
    return Step({name: params[name] - lr * grads[name] for name in params}, {"loss": loss})

# %% nbgrader={"grade_id": "repaired_step"}
class Repaired(NamedTuple):
    state: dict
    metrics: dict


def repaired_step(state, x, y, lr):
    loss, grads = jax.value_and_grad(robust_loss)(state["params"], x, y)
    moved = {name: leaf - lr * grads[name] for name, leaf in state["params"].items()}
    return Repaired({**state, "params": moved, "steps": state["steps"] + 1}, {"loss": loss})
