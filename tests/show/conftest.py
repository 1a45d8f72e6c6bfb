"""Every test here has a progress file of its own; tests that need Chromium carry the marker `browser`."""

from pathlib import Path

import pytest

from traceonce.show import prediction


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "browser: runs JupyterLab in a headless Chromium")


@pytest.fixture(autouse=True)
def progress_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "progress.json"
    monkeypatch.setenv("TRACEONCE_PROGRESS", str(path))
    monkeypatch.setattr(prediction, "_session", {})
    return path
