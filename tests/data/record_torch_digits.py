"""Train a small classifier of digits in PyTorch, and record its checkpoint and its answers for `traceonce.data.torch_digits`.

It was run once, with torch 2.13.0+cpu, whose version stands in the file that it wrote. PyTorch is no part of the project's
environment: run this in one of its own that has torch and NumPy, with the project's sources on its path.

    PYTHONPATH=src python tests/data/record_torch_digits.py
"""

import copy
from pathlib import Path

import numpy as np
import torch
from torch import nn

import traceonce.data
from traceonce.data import digits

TRAINED_ON = 1200
ANSWERED = 8


class Classifier(nn.Module):
    """64 pixels, two hidden layers of 16, batch norm, ten scores. The second layer's weight is square."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
        self.norm = nn.BatchNorm1d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.encoder(x)))


def trained() -> Classifier:
    """The classifier after 1500 steps of Adam on the first 1200 digits, in evaluation mode."""
    torch.manual_seed(3)
    torch.set_num_threads(1)
    pixels, labels = map(torch.from_numpy, digits())
    model = Classifier()
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, weight_decay=1e-5)
    for _ in range(1500):
        rows = torch.randint(0, TRAINED_ON, (64,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(pixels[rows]), labels[rows].long()).backward()
        optimizer.step()
    return model.eval()


def record(path: Path) -> None:
    """Write the state dict entry by entry, and the scores and counts that PyTorch itself gives."""
    model, (pixels, labels) = trained(), map(torch.from_numpy, digits())
    with torch.no_grad():
        scores = model(pixels)
        wide = copy.deepcopy(model).double()(pixels.double())
    right = (scores.argmax(1) == labels)[TRAINED_ON:].sum()
    print(f"torch {torch.__version__}: {right} of {len(labels) - TRAINED_ON} right; "
          f"float32 is within {(scores - wide).abs().max():.1e} of float64, of scores up to {wide.abs().max():.1f}")  # fmt: skip
    entries = {f"state_dict/{name}": tensor.numpy() for name, tensor in model.state_dict().items()}
    entries |= {
        "scores": scores[:ANSWERED].numpy(),
        "right": right.numpy(),
        "version": np.array(str(torch.__version__)),
    }
    np.savez_compressed(path, allow_pickle=False, **entries)


if __name__ == "__main__":
    record(Path(traceonce.data.__file__).with_name("torch_digits.npz"))
