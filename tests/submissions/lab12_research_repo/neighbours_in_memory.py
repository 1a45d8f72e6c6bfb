# ---
# kind: wrong
# trap: takes neighbours in memory for neighbours in the picture
# fails: test_roughness_of_random_pictures
# hint: should be no neighbours
# ---

# %% nbgrader={"grade_id": "roughness"}
# digitnet/train.py
def roughness(params):
    pictures = params["w1"].reshape(*IMAGE, -1)
    return jnp.mean(jnp.diff(pictures, axis=0) ** 2) + jnp.mean(jnp.diff(params["w1"], axis=0) ** 2)
