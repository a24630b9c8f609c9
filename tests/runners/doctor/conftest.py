"""Fixtures: a replaced TensorFlow, and no credentials."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def tensorflow_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str], None]:
    """Puts a module named tensorflow before the installed one, for child processes."""

    def write(code: str) -> None:
        folder = tmp_path / "instead"
        folder.mkdir()
        (folder / "tensorflow.py").write_text(code)
        monkeypatch.setenv("PYTHONPATH", str(folder))

    return write


@pytest.fixture
def no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    folder = tmp_path / "gcloud"
    folder.mkdir()
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(folder))
    return folder
