"""What all tests share: the marker for browser tests, and the fixtures that need a served desk."""

import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from lab_browser import chromium, desk_of, lab

__all__ = ["chromium", "desk_of", "lab"]


def pytest_configure(config: pytest.Config) -> None:
    # A run under nohup, or in some CI, ignores hang-ups, and every process it starts would inherit that and outlive its terminal.
    if hasattr(signal, "SIGHUP"):
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    config.addinivalue_line("markers", "browser: drives a real Chromium; slow, and skipped where none is installed")
    config.addinivalue_line(
        "markers", "gpu: only a GPU can show it; `make test-gpu` runs these, `make test` leaves them out"
    )
