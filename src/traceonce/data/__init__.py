"""Data that the lessons and labs share. It lies in the package: no download, the same on a desk and in the grader."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = [
    "Digits",
    "TorchDigits",
    "TorchHabits",
    "TorchRows",
    "digits",
    "torch_digits",
    "torch_habits",
    "torch_rows",
]

_DIGITS = Path(__file__).with_name("optdigits_test.npz")
_TORCH = Path(__file__).with_name("torch_digits.npz")
_ROWS = Path(__file__).with_name("torch_rows.npz")
_HABITS = Path(__file__).with_name("torch_habits.json")


class Digits(NamedTuple):
    """Handwritten digits, row by row.

    **Arguments**

    - `pixels`: float32 of shape (1797, 64); the share of ink in each cell of an 8 x 8 grid, 0 (paper) to 1 (all ink),
      in steps of 1/16. `pixels[i].reshape(8, 8)` is an image, its first row on top.
    - `labels`: int32 of shape (1797,); the digit, 0 to 9.
    """

    pixels: np.ndarray[Any, np.dtype[np.float32]]
    labels: np.ndarray[Any, np.dtype[np.int32]]


def digits() -> Digits:
    """All 1797 digits, as NumPy arrays of your own, in the order of the source.

    All ten digits are about equally frequent (174 to 183 of each), also in a part from the start. The writers follow each
    other: 13 people wrote the digits, so rows that are near each other can be of one hand. Shuffle before you split if that
    must not matter.

    Source: E. Alpaydin and C. Kaynak, "Optical Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998,
    doi:10.24432/C50P49, licence CC BY 4.0. ``SOURCE.md`` beside this file says what was changed.

    ```python
    pixels, labels = digits()
    pixels.shape, labels.shape      # (1797, 64), (1797,)
    ```
    """
    with np.load(_DIGITS, allow_pickle=False) as stored:
        return Digits((stored["counts"] / 16).astype(np.float32), stored["labels"].astype(np.int32))


class TorchDigits(NamedTuple):
    """A classifier of digits as PyTorch saved it, and what PyTorch answered with it.

    **Arguments**

    - `state_dict`: eleven arrays by PyTorch's names, in its order and its layout. `encoder.0` and `encoder.2` are linear
      layers (64 to 16, 16 to 16), each followed by tanh; then come the batch norm `norm` of 16 features and the linear layer
      `head` (16 to 10). A linear layer's weight has the shape (outputs, inputs).
    - `scores`: float32 of shape (8, 10); the scores of the first 8 digits, in evaluation mode.
    - `right`: how many of the digits from row 1200 on it gets right; the rows before were its training set.
    - `version`: of the PyTorch that wrote all of this.
    """

    state_dict: dict[str, np.ndarray[Any, Any]]
    scores: np.ndarray[Any, np.dtype[np.float32]]
    right: int
    version: str


def torch_digits() -> TorchDigits:
    """A small checkpoint in PyTorch's layout with recorded answers, as NumPy arrays of your own.

    PyTorch is not needed. ``SOURCE.md`` beside this file says how it was recorded.

    ```python
    torch_digits().state_dict["encoder.0.weight"].shape     # (16, 64): outputs, inputs
    ```
    """
    with np.load(_TORCH, allow_pickle=False) as stored:
        names = [name for name in stored if name.startswith("state_dict/")]
        state_dict = {name.removeprefix("state_dict/"): stored[name] for name in names}
        return TorchDigits(state_dict, stored["scores"], int(stored["right"]), str(stored["version"]))


class TorchRows(NamedTuple):
    """What PyTorch says of the course's four rows, recorded.

    **Arguments**

    - `linear`: `w`, `b` and `loss` of the linear model with squared error, mean over the rows; `linear_grad`: its gradients.
    - `state_dict`: a network in PyTorch's names and layout: linear `0` (2 to 4), layer norm `1`, exact GELU, linear `3` (4 to 3).
    - `labels`: the class of each row.
    - `scores`, `loss`, `grads`: what the network gives for the rows, cross entropy, mean over the rows, and its gradients by name.
    - `losses`, `after`: the loss before each of three steps of `torch.optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.01)`, and
      the parameters after them.
    - `version`: of the PyTorch that wrote all of this.
    """

    linear: dict[str, np.ndarray[Any, Any]]
    linear_grad: dict[str, np.ndarray[Any, Any]]
    state_dict: dict[str, np.ndarray[Any, Any]]
    labels: np.ndarray[Any, np.dtype[np.int32]]
    scores: np.ndarray[Any, np.dtype[np.float32]]
    loss: np.ndarray[Any, np.dtype[np.float32]]
    grads: dict[str, np.ndarray[Any, Any]]
    losses: np.ndarray[Any, np.dtype[np.float32]]
    after: dict[str, np.ndarray[Any, Any]]
    version: str


def torch_rows() -> TorchRows:
    """Values, gradients and three optimizer steps that PyTorch gave for the four rows, as NumPy arrays of your own.

    PyTorch is not needed. ``SOURCE.md`` beside this file says how it was recorded.

    ```python
    float(torch_rows().linear["loss"])      # 1.890625
    ```
    """
    with np.load(_ROWS, allow_pickle=False) as stored:

        def under(prefix: str) -> dict[str, np.ndarray[Any, Any]]:
            return {name.removeprefix(prefix): stored[name] for name in stored if name.startswith(prefix)}

        return TorchRows(
            linear=under("linear/"),
            linear_grad=under("linear_grad/"),
            state_dict=under("state_dict/"),
            labels=stored["labels"].astype(np.int32),
            scores=stored["scores"],
            loss=stored["loss"],
            grads=under("grad/"),
            losses=stored["losses"],
            after=under("after/"),
            version=str(stored["version"]),
        )


class TorchHabits(NamedTuple):
    """What PyTorch printed for each row of the page `course/torch_to_jax`, recorded.

    **Arguments**

    - `code`: row -> the PyTorch code, as it was run.
    - `printed`: row -> what it printed.
    - `version`: of that PyTorch.
    """

    code: Mapping[str, str]
    printed: Mapping[str, str]
    version: str


def torch_habits() -> TorchHabits:
    """The recorded side of the page that sets PyTorch beside JAX. PyTorch is not needed.

    ```python
    torch_habits().printed["std"]       # "1.291"
    ```
    """
    stored = json.loads(_HABITS.read_text("utf-8"))
    code, printed = ({name: row[key] for name, row in stored["rows"].items()} for key in ("code", "printed"))
    return TorchHabits(code, printed, stored["version"])
