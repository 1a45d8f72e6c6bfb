# ---
# kind: alternative
# about: jacfwd for the rows, a select for the clip, a scan over single digits, einsum for the mean, a reduce over paths, jvp-free differences with eye
# ---

# %% nbgrader={"grade_id": "gradients"}
def gradients(params, x, y):
    losses = lambda params: jax.vmap(row_loss, (None, 0, 0))(params, x, y)
    return jax.jacfwd(losses)(params)


# %% nbgrader={"grade_id": "clip"}
def clip(tree, limit):
    total = jax.tree.reduce(lambda so_far, leaf: so_far + jnp.vdot(leaf, leaf), tree, jnp.float32(0))
    norm = jnp.sqrt(total)
    scale = jnp.where(norm > limit, limit / jnp.where(norm > limit, norm, 1.0), 1.0)
    return jax.tree.map(lambda leaf: scale * leaf, tree)


# %% nbgrader={"grade_id": "clipped_gradient"}
def clipped_gradient(params, x, y, limit):
    clipped = jax.lax.map(lambda pair: clip(jax.grad(row_loss)(params, *pair), limit), (x, y))
    return {name: jnp.einsum("n...->...", leaf) / x.shape[0] for name, leaf in clipped.items()}


# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    def add(total, digit):
        gradient = clip(jax.grad(digit_loss)(params, *digit), limit)
        return jax.tree.map(jnp.add, total, gradient), ()

    zeros = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape), params)
    total, _ = jax.lax.scan(add, zeros, (images, labels))
    n = images.shape[0]
    return jax.tree.map(lambda leaf: leaf / n, total)


# %% nbgrader={"grade_id": "penalty"}
def penalty(params, strength):
    kept = jax.tree.map_with_path(
        lambda path, leaf: jnp.zeros(()) if getattr(path[-1], "key", "") == "b" else jnp.sum(jnp.square(leaf)), params
    )
    return jax.tree.reduce(jnp.add, kept, jnp.float32(0)) * strength


# %% nbgrader={"grade_id": "gradient_agrees"}
from jax.flatten_util import ravel_pytree


def gradient_agrees(function, params):
    flat, back = ravel_pytree(params)
    moves = 0.01 * np.eye(flat.size, dtype="float32")
    up = jnp.stack([function(back(flat + move)) for move in moves])
    down = jnp.stack([function(back(flat - move)) for move in moves])
    gap = jnp.abs(ravel_pytree(jax.grad(function)(params))[0] - (up - down) / 0.02)
    return jnp.max(gap) < 0.02


# %% nbgrader={"grade_id": "train_step"}
def train_step(params, x, y, lr, limit, strength):
    def objective(params):
        return jax.vmap(row_loss, (None, 0, 0))(params, x, y).mean() + penalty(params, strength)

    rows = gradients(params, x, y)
    norms = jnp.linalg.norm(jnp.column_stack([rows["w"], rows["b"]]), axis=1)
    both = jax.tree.map(jnp.add, clipped_gradient(params, x, y, limit), jax.grad(penalty)(params, strength))
    moved = {name: params[name] - lr * both[name] for name in params}
    return moved, {"loss": objective(params), "clipped": (norms > limit).astype(jnp.float32).mean()}
