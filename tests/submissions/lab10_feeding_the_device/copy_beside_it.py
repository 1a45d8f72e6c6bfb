# ---
# kind: wrong
# trap: keeps a copy of the old file, and writes in place
# fails: test_file_is_whole
# hint: Written in place
# ---

# %% nbgrader={"grade_id": "save"}
import shutil


def save(path, values):
    if path.exists():
        shutil.copy(path, path.with_name("backup.npz"))
    np.savez(path, **values)


def load(path):
    with np.load(path) as file:
        return dict(file)
