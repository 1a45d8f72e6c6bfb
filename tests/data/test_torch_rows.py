"""The recorded answers about the four rows: that they follow from the recorded numbers, in NumPy and float64."""

import math

import numpy as np
import pytest

from traceonce.data import torch_rows

X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
Y = np.array([2.0, -1.0, 1.0, 3.0])


def scores_in_float64(state_dict, exact=True):
    """The network in PyTorch's layout; with the tanh form of GELU where it is not to be exact."""
    wide = {name: np.float64(array) for name, array in state_dict.items()}
    z = X @ wide["0.weight"].T + wide["0.bias"]
    z = (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5) * wide["1.weight"] + wide["1.bias"]
    if exact:
        z = z * 0.5 * (1 + np.vectorize(math.erf)(z / math.sqrt(2)))
    else:
        z = z * 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (z + 0.044715 * z**3)))
    return z @ wide["3.weight"].T + wide["3.bias"]


def loss_in_float64(state_dict, labels):
    scores = scores_in_float64(state_dict)
    return np.mean(np.log(np.exp(scores).sum(1)) - scores[np.arange(4), labels])


def test_linear_loss_and_gradients_follow_by_hand():
    linear, grad = torch_rows().linear, torch_rows().linear_grad
    error = X @ linear["w"] + linear["b"] - Y
    assert linear["loss"] == np.mean(error**2)
    assert np.array_equal(grad["w"], 2 * X.T @ error / 4)
    assert grad["b"] == 2 * error.mean()


def test_network_scores_and_loss_follow_from_the_weights():
    rows = torch_rows()
    assert np.allclose(scores_in_float64(rows.state_dict), rows.scores, atol=1e-6)
    assert loss_in_float64(rows.state_dict, rows.labels) == pytest.approx(rows.loss, abs=1e-6)


def test_the_other_gelu_is_told_apart():
    rows = torch_rows()
    assert np.abs(scores_in_float64(rows.state_dict, exact=False) - rows.scores).max() > 5e-5


@pytest.mark.parametrize("name", ["0.weight", "0.bias", "1.weight", "1.bias", "3.weight", "3.bias"])
def test_gradients_are_the_slopes_of_the_loss(name):
    rows = torch_rows()
    for place in np.ndindex(rows.state_dict[name].shape):
        around = []
        for by in (1e-4, -1e-4):
            moved = {key: np.float64(array) for key, array in rows.state_dict.items()}
            moved[name][place] += by
            around.append(loss_in_float64(moved, rows.labels))
        assert rows.grads[name][place] == pytest.approx((around[0] - around[1]) / 2e-4, abs=1e-5)


def test_first_step_follows_from_the_gradient():
    rows = torch_rows()
    assert rows.losses[0] == rows.loss
    assert rows.losses[2] < rows.losses[1] < rows.losses[0]
    assert rows.after.keys() == rows.state_dict.keys() == rows.grads.keys()


def test_the_version_is_named():
    assert torch_rows().version == "2.13.0+cpu"


def test_each_call_gives_arrays_of_its_own():
    torch_rows().state_dict["0.bias"][:] = 7.0
    assert torch_rows().state_dict["0.bias"].max() < 7.0
