"""The recorded PyTorch checkpoint: what is promised of it, and that its answers follow from its numbers."""

import numpy as np

from traceonce.data import digits, torch_digits


def scores_in_float64(state_dict, pixels):
    """The network in PyTorch's layout, in NumPy and float64."""
    wide = {name: np.float64(array) for name, array in state_dict.items()}
    hidden = np.tanh(np.float64(pixels) @ wide["encoder.0.weight"].T + wide["encoder.0.bias"])
    hidden = np.tanh(hidden @ wide["encoder.2.weight"].T + wide["encoder.2.bias"])
    hidden = (hidden - wide["norm.running_mean"]) / np.sqrt(wide["norm.running_var"] + 1e-5)
    hidden = hidden * wide["norm.weight"] + wide["norm.bias"]
    return hidden @ wide["head.weight"].T + wide["head.bias"]


def test_names_shapes_and_dtypes_are_those_of_a_state_dict():
    state_dict = torch_digits().state_dict
    assert list(state_dict)[:2] == ["encoder.0.weight", "encoder.0.bias"]
    assert [name for name in state_dict if state_dict[name].dtype != "float32"] == ["norm.num_batches_tracked"]
    assert [state_dict[f"{layer}.weight"].shape for layer in ("encoder.0", "encoder.2", "head")] == [
        (16, 64),
        (16, 16),
        (10, 16),
    ]


def test_recorded_scores_follow_from_the_recorded_weights():
    checkpoint = torch_digits()
    assert np.allclose(scores_in_float64(checkpoint.state_dict, digits().pixels[:8]), checkpoint.scores, atol=2e-5)


def test_recorded_count_follows_from_the_recorded_weights():
    checkpoint, (pixels, labels) = torch_digits(), digits()
    answers = scores_in_float64(checkpoint.state_dict, pixels[1200:]).argmax(axis=1)
    assert int((answers == labels[1200:]).sum()) == checkpoint.right == 536


def test_a_transposed_square_layer_gives_other_scores():
    checkpoint = torch_digits()
    square = checkpoint.state_dict["encoder.2.weight"]
    wrong = checkpoint.state_dict | {"encoder.2.weight": square.T}
    assert np.abs(scores_in_float64(wrong, digits().pixels[:8]) - checkpoint.scores).max() > 1


def test_the_version_is_named():
    assert torch_digits().version == "2.13.0+cpu"


def test_each_call_gives_arrays_of_its_own():
    torch_digits().state_dict["head.bias"][:] = 7.0
    assert torch_digits().state_dict["head.bias"].max() < 7.0
