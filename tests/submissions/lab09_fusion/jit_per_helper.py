# ---
# kind: wrong
# trap: a jit on each stage, none around them
# fails: test_call_starts_one_program
# hint: with a jit on each helper
# ---

# %% nbgrader={"grade_id": "read_all"}
_cut, _prepare = jax.jit(jax.vmap(cut, in_axes=(None, 0))), jax.jit(jax.vmap(prepare))
_embed, _attend, _score = (eqx.filter_jit(jax.vmap(stage, in_axes=(None, 0))) for stage in (embed, attend, score))


@jax.jit
def _decide(crops, scores, threshold):
    shares = jax.nn.softmax(scores)
    best, empty = shares.max(axis=1), crops.max(axis=(1, 2)) < 0.1
    found = jnp.where(empty | (best < threshold), -1, shares.argmax(axis=1))
    return found, jnp.where(empty, 0.0, best)


def read_all(model, page, corners, threshold):
    crops = _cut(page, corners)
    return _decide(crops, _score(model, _attend(model, _embed(model, _prepare(crops)))), threshold)
