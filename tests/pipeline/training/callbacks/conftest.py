"""Trainings with finite examples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.training.callbacks.trainings import train, write_examples


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_examples(tmp_path_factory.mktemp("examples"))


@pytest.fixture
def trained(examples: Path) -> Callable[..., tuple[dict[str, list[float]], Any]]:
    """Trains with finite examples."""
    return lambda **settings: train(examples, **settings)
