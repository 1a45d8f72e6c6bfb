"""Record what PyTorch says of the course's four rows, for `traceonce.data.torch_rows`: values, gradients, three steps.

It was run once, with torch 2.13.0+cpu, whose version stands in the file that it wrote. PyTorch is no part of the project's
environment: run this in one of its own that has torch and NumPy, with the project's sources on its path.

    PYTHONPATH=src python tests/data/record_torch_rows.py
"""

import copy
from pathlib import Path

import numpy as np
import torch
from torch import nn

import traceonce.data

X = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [2.0, 1.0]])
Y = torch.tensor([2.0, -1.0, 1.0, 3.0])
LABELS = torch.tensor([2, 0, 1, 2])
STEPS = 3


def linear_model() -> dict[str, np.ndarray]:
    """Squared error, mean over the rows, at w = [0.5, -0.25], b = 0.125."""
    w = torch.tensor([0.5, -0.25], requires_grad=True)
    b = torch.tensor(0.125, requires_grad=True)
    loss = nn.functional.mse_loss(X @ w + b, Y)
    loss.backward()
    given = {"linear/w": w, "linear/b": b, "linear/loss": loss, "linear_grad/w": w.grad, "linear_grad/b": b.grad}
    return {name: tensor.detach().numpy() for name, tensor in given.items()}


def network() -> nn.Module:
    """Two inputs, four hidden units with a norm, three classes. 35 numbers."""
    torch.manual_seed(12)
    model = nn.Sequential(nn.Linear(2, 4), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 3))
    with torch.no_grad():  # a fresh norm has scale 1 and shift 0, which hides both
        model[1].weight.uniform_(0.5, 1.5)
        model[1].bias.uniform_(-0.5, 0.5)
    return model


def one_gradient(model: nn.Module) -> dict[str, np.ndarray]:
    """Scores, loss and the gradient of each parameter."""
    scores = model(X)
    loss = nn.functional.cross_entropy(scores, LABELS)
    loss.backward()
    entries = {"scores": scores.detach().numpy(), "loss": loss.detach().numpy()}
    return entries | {f"grad/{name}": tensor.grad.numpy() for name, tensor in model.named_parameters()}


def some_steps(model: nn.Module) -> dict[str, np.ndarray]:
    """The loss before each of three steps, and the parameters after them."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(X), LABELS)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    after = {f"after/{name}": tensor.detach().numpy() for name, tensor in model.named_parameters()}
    return {"losses": np.float32(losses)} | after


def record(path: Path) -> None:
    """Write all of it, and say how far float32 is from the same in float64."""
    torch.set_num_threads(1)
    model = network()
    entries = {f"state_dict/{name}": tensor.numpy().copy() for name, tensor in model.state_dict().items()}
    entries |= (
        {"labels": LABELS.numpy()}
        | linear_model()
        | one_gradient(copy.deepcopy(model))
        | some_steps(copy.deepcopy(model))
    )
    wide = nn.functional.cross_entropy(copy.deepcopy(model).double()(X.double()), LABELS)
    print(
        f"torch {torch.__version__}: loss {entries['loss']:.6f}, {abs(float(entries['loss']) - wide.item()):.1e} from float64"
    )
    np.savez_compressed(path, allow_pickle=False, version=np.array(str(torch.__version__)), **entries)


if __name__ == "__main__":
    record(Path(traceonce.data.__file__).with_name("torch_rows.npz"))
