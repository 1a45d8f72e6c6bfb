# ---
# kind: wrong
# trap: writes beside it, and copies over the old file
# fails: test_file_is_whole
# hint: then os.replace
# ---

# %% nbgrader={"grade_id": "save"}
import shutil


def save(path, values):
    part = path.with_name("part.npz")
    np.savez(part, **values)
    shutil.copyfile(part, path)


def load(path):
    with np.load(path) as file:
        return dict(file)
