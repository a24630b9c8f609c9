"""Digests of files and directories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sluice.storage import digest

pytestmark = pytest.mark.unit


def _tree(root: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return digest.of_tree(root)


def test_times_do_not_count(tmp_path):
    before = _tree(tmp_path, {"a": "1", "d/b": "2"})
    os.utime(tmp_path / "a", (0, 0))
    assert digest.of_tree(tmp_path) == before


@pytest.mark.parametrize(
    "other",
    [
        {"a": "1", "d/b": "3"},
        {"a": "1", "d/c": "2"},
        {"a": "1", "d/b": "2", "e": ""},
        {"ad": "1", "b": "2"},
    ],
)
def test_names_and_contents_count(tmp_path, other):
    assert _tree(tmp_path / "x", {"a": "1", "d/b": "2"}) != _tree(tmp_path / "y", other)
