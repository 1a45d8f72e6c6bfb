# ---
# kind: wrong
# trap: np.savez on the file itself
# fails: test_file_is_whole
# hint: Written in place
# ---

# %% nbgrader={"grade_id": "save"}
def save(path, values):
    np.savez(path, **values)


def load(path):
    with np.load(path) as file:
        return dict(file)
