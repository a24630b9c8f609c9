"""Fixtures to check small models, without an import of TensorFlow for each server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from components.serving_check import model_server
from sluice.project import own_root
from tests.kit import served_models
from tests.kit.exported_models import write_examples
from tests.kit.forked_model_servers import CLIENT


@pytest.fixture(scope="session")
def forked_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The socket of a process that forks servers."""
    path = str(tmp_path_factory.mktemp("servers") / "socket")
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kit.forked_model_servers", path],
        cwd=own_root(),
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        yield path
        process.kill()


@pytest.fixture
def fast_servers(forked_servers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a check start a server whose TensorFlow is imported already."""
    start = CLIENT.format(path=forked_servers)
    monkeypatch.setattr(model_server, "_START", start)


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("examples")
    return write_examples(folder, test=served_models.records()).uri


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model without a fault."""
    return served_models.save(tmp_path_factory.mktemp("good") / "Format-Serving")
