# ---
# kind: alternative
# about: optax's global norm, a map with batches inside a scan's piece, a vmap over the eye, a generator over paths
# ---

# %% nbgrader={"grade_id": "clip"}
import optax


def clip(tree, limit):
    shrink = jnp.minimum(1.0, limit / jnp.maximum(optax.global_norm(tree), 1e-30))
    return jax.tree.map(lambda leaf: leaf * shrink, tree)


# %% nbgrader={"grade_id": "clipped_digits"}
def clipped_digits(params, images, labels, limit):
    gradient = jax.vmap(jax.grad(digit_loss), in_axes=(None, 0, 0))

    def piece(at, total):
        cut = lambda array: jax.lax.dynamic_slice_in_dim(array, at * 32, 32)
        short = jax.vmap(clip, in_axes=(0, None))(gradient(params, cut(images), cut(labels)), limit)
        return jax.tree.map(lambda t, leaf: t + leaf.sum(0) / images.shape[0], total, short)

    return jax.lax.fori_loop(0, images.shape[0] // 32, piece, jax.tree.map(jnp.zeros_like, params))


# %% nbgrader={"grade_id": "gradient_agrees"}
def gradient_agrees(function, params):
    grads = jax.grad(function)(params)
    leaves, tree = jax.tree.flatten(params)
    agreed = []
    for i, grad in enumerate(jax.tree.leaves(grads)):
        leaf = jnp.asarray(leaves[i])
        for j in range(leaf.size):
            moved = lambda by: jnp.ravel(leaf).at[j].add(by).reshape(leaf.shape)
            value = lambda by: float(function(jax.tree.unflatten(tree, [*leaves[:i], moved(by), *leaves[i + 1 :]])))
            difference = (value(0.01) - value(-0.01)) / 0.02
            agreed.append(abs(difference - float(jnp.ravel(grad)[j])) < 0.02)
    return all(agreed)
