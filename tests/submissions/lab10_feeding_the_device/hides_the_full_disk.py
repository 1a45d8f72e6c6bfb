# ---
# kind: wrong
# trap: a bare except around the save
# fails: test_failing_save_leaves_the_old
# hint: hides a full disk
# ---

# %% nbgrader={"grade_id": "save"}
def save(path, values):
    """Write the dict to `path`, all or nothing."""
    part = path.with_name(path.name + ".part")
    try:
        with open(part, "wb") as file:
            np.savez(file, **values)
        os.replace(part, path)
    except Exception:
        pass


def load(path):
    """The dict in `path`, with NumPy arrays as values."""
    with np.load(path) as file:
        return dict(file)
