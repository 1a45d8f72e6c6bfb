# ---
# kind: alternative
# about: a named tuple, a scan over single fields, the share by logsumexp, a comparison field by field
# ---

# %% nbgrader={"grade_id": "read_one"}
from typing import NamedTuple


class Reading(NamedTuple):
    digit: jax.Array
    share: jax.Array


def read_one(model, page, corner, threshold):
    crop = page[corner[0] + jnp.arange(8)[:, None], corner[1] + jnp.arange(8)]
    blank = jnp.all(crop < 0.1)
    safe = jnp.where(blank, jnp.eye(8), crop)
    logits = score(model, attend(model, embed(model, prepare(safe))))
    best = jnp.argmax(logits)
    share = jnp.exp(logits[best] - jax.scipy.special.logsumexp(logits))
    refuse = blank | ~(share >= threshold)
    return Reading(jax.lax.select(refuse, jnp.full_like(best, -1), best), share * ~blank)


# %% nbgrader={"grade_id": "read_all"}
@eqx.filter_jit
def read_all(model, page, corners, threshold):
    def body(_, corner):
        return None, read_one(model, page, corner, threshold)

    return jax.lax.scan(body, None, corners)[1]


# %% nbgrader={"grade_id": "agrees"}
def agrees(new, old, threshold):
    try:
        np.testing.assert_equal(np.shape(new[1]), np.shape(old[1]))
        np.testing.assert_equal(np.shape(new[0]), np.shape(old[0]))
        gap = np.subtract(new[1], old[1])
        assert not np.isnan(gap).any() and (abs(gap) <= TOLERANCE).all()
        for mine, his, share in zip(new[0], old[0], old[1]):
            if mine != his:
                assert abs(share - threshold) <= TOLERANCE and min(mine, his) == -1
    except AssertionError:
        return False
    return True
