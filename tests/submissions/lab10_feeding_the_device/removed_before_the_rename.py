# ---
# kind: wrong
# trap: removes the old file before the new one has its name
# fails: test_file_is_whole
# hint: removed before the new one is there
# ---

# %% nbgrader={"grade_id": "save"}
def save(path, values):
    part = path.with_name("part.npz")
    np.savez(part, **values)
    if path.exists():
        path.unlink()
    part.rename(path)


def load(path):
    with np.load(path) as file:
        return dict(file)
