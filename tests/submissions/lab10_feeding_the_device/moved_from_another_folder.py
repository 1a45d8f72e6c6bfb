# ---
# kind: wrong
# trap: writes into the folder for temporary files, and moves it
# fails: test_file_is_whole
# hint: a move is a
# ---

# %% nbgrader={"grade_id": "save"}
import shutil


def save(path, values):
    with tempfile.NamedTemporaryFile(delete=False) as file:
        np.savez(file, **values)
        file.flush()
        os.fsync(file.fileno())
    shutil.move(file.name, path)


def load(path):
    with np.load(path) as file:
        return dict(file)
