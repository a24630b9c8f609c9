"""A folder with input files, and what an ingestion of them wrote."""

from __future__ import annotations

import pytest

from tests.kit.ingestion import Room


@pytest.fixture
def room(tmp_path):
    return Room(tmp_path)
