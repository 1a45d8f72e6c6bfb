# ---
# kind: wrong
# trap: the square of a norm
# fails: test_flat_pictures_have_no_slope
# hint: no slope
# ---

# %% nbgrader={"grade_id": "roughness"}
# digitnet/train.py
def roughness(params):
    pictures = params["w1"].reshape(*IMAGE, -1)
    down, right = jnp.diff(pictures, axis=0), jnp.diff(pictures, axis=1)
    return sum(jnp.linalg.norm(part.ravel()) ** 2 / part.size for part in (down, right))
