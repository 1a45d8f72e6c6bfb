"""Data that the lessons and labs share. It lies in the package: no download, the same on a desk and in the grader."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Digits", "digits"]

_DIGITS = Path(__file__).with_name("optdigits_test.npz")


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
