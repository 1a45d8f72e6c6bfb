"""The digits that lessons and labs share: what is promised of them, and that they are those of the source."""

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np

import traceonce.data
from traceonce.data import digits


def test_shapes_dtypes_and_units_are_as_documented():
    pixels, labels = digits()
    assert (pixels.shape, pixels.dtype) == ((1797, 64), np.float32)
    assert (labels.shape, labels.dtype) == ((1797,), np.int32)
    assert (pixels.min(), pixels.max()) == (0.0, 1.0)
    assert np.array_equal(pixels * 16, np.round(pixels * 16))


def test_every_digit_is_there_about_equally_often():
    labels = digits().labels
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert np.bincount(labels[:100], minlength=10).min() >= 8


def test_numbers_are_those_of_the_source():
    pixels, labels = digits()
    stored = (pixels * 16).astype("uint8").tobytes() + labels.astype("uint8").tobytes()
    assert hashlib.sha256(stored).hexdigest().startswith("87ff0c9e40dc7e2c0e34e7257799c2e3")


def test_a_row_is_an_image_with_its_first_row_on_top():
    pixels, labels = digits()
    sevens = pixels[labels == 7].reshape(-1, 8, 8).mean(axis=0)
    ones = pixels[labels == 1].reshape(-1, 8, 8).mean(axis=0)
    assert sevens[0].sum() > 2 * sevens[7].sum()  # a seven has its bar on top
    assert ones[:, 2:6].sum() > 5 * ones[:, [0, 1, 6, 7]].sum()  # a one is upright


def test_each_call_gives_arrays_of_its_own():
    digits().pixels[:] = 7.0
    assert digits().pixels.max() == 1.0


def test_licence_and_source_lie_beside_the_data():
    note = (Path(traceonce.data.__file__).parent / "SOURCE.md").read_text("utf-8")
    assert "CC BY 4.0" in note
    assert "10.24432/C50P49" in note


def test_loading_imports_no_jax():
    command = "import sys; from traceonce.data import digits; digits(); raise SystemExit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", command], check=False).returncode == 0
