# ---
# kind: wrong
# trap: writes over the old bytes with a single call
# fails: test_file_is_whole
# hint: Written in place
# ---

# %% nbgrader={"grade_id": "save"}
import io


def save(path, values):
    memory = io.BytesIO()
    np.savez(memory, **values)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT)
    os.write(handle, memory.getvalue())
    os.close(handle)


def load(path):
    with np.load(path) as file:
        return dict(file)
