# ---
# kind: wrong
# trap: one mean over all pairs
# fails: test_roughness_of_random_pictures
# hint: each mean divides by its own
# ---

# %% nbgrader={"grade_id": "roughness"}
# digitnet/train.py
def roughness(params):
    pictures = params["w1"].reshape(*IMAGE, -1)
    down, right = jnp.diff(pictures, axis=0), jnp.diff(pictures, axis=1)
    return 2 * (jnp.sum(down**2) + jnp.sum(right**2)) / (down.size + right.size)
