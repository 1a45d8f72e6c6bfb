# ---
# kind: wrong
# trap: saves the arrays, and no numbers or strings
# fails: test_saved_comes_back
# hint: numbers and strings
# ---

# %% nbgrader={"grade_id": "save"}
def save(path, values):
    """Write the dict to `path`, all or nothing."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        np.savez(file, **{name: value for name, value in values.items() if hasattr(value, "shape")})
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def load(path):
    """The dict in `path`, with NumPy arrays as values."""
    with np.load(path) as file:
        return dict(file)
