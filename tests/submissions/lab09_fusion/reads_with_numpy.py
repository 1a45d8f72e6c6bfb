# ---
# kind: wrong
# trap: leaves JAX and reads the page on the host
# fails: test_page_starts_one_program
# hint: None at all is a page read by NumPy
# ---

# %% nbgrader={"grade_id": "read_page"}
def _softmax(scores):
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def read_page(model, page, corners, threshold):
    if len(corners) > CAPACITY:
        raise ValueError("too many fields")
    w, page = {name: np.asarray(leaf) for name, leaf in model.weights.items()}, np.asarray(page)
    found, best = np.full(len(corners), -1), np.zeros(len(corners))
    for i, (row, column) in enumerate(corners):
        crop = page[row : row + 8, column : column + 8]
        if crop.max() >= 0.1:
            ink = (crop - crop.min()) / (crop - crop.min()).max()
            tokens = ink.reshape(2, 4, 2, 4).swapaxes(1, 2).reshape(4, 16) @ w["embed"]
            tokens = tokens + _gelu(_softmax(tokens @ w["query"] @ tokens.T) @ tokens @ w["value"])
            shares = _softmax(tokens.reshape(-1) @ w["out"] + w["bias"])
            best[i] = shares.max()
            found[i] = shares.argmax() if best[i] >= threshold else -1
    return found, best
