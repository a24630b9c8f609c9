"""Cached digests and imports of source files."""

from __future__ import annotations

import ast
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice.errors import ConfigError
from sluice.storage import source_files
from sluice.storage.source_files import CACHE_FILE, source_of

pytestmark = pytest.mark.unit


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has not looked at any source."""
    monkeypatch.delenv(CACHE_FILE, raising=False)
    monkeypatch.setattr(source_files, "_cache", None)
    yield


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The sources that were parsed."""
    seen: list[bytes] = []
    parse = ast.parse

    def noted(content: bytes) -> Any:
        seen.append(content)
        return parse(content)

    monkeypatch.setattr(ast, "parse", noted)
    return seen


def _write(path: Path, text: str) -> Path:
    path.write_text(text)
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))
    return path


def test_what_is_imported(tmp_path: Path) -> None:
    text = "import a, b.c\nfrom . import d\ndef f():\n    from ..e import g, h\n"
    assert source_of(_write(tmp_path / "x.py", text)).imports == [
        (0, "a", []),
        (0, "b.c", []),
        (1, "", ["d"]),
        (2, "e", ["g", "h"]),
    ]


def test_the_cache_file_is_shared_between_processes(
    tmp_path: Path, parsed: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, memory = _write(tmp_path / "x.py", "import a"), tmp_path / "memory.json"
    source_files.use_cache_file(memory)
    first = source_of(path)
    source_files.save()
    monkeypatch.setattr(source_files, "_cache", None)
    monkeypatch.setenv(CACHE_FILE, str(memory))
    assert source_of(path) == first
    assert parsed == [b"import a"]

    _write(path, "import b")
    assert source_of(path).imports == [(0, "b", [])]
    assert source_of(path).digest != first.digest


def test_invalid_python_is_reported_each_time(tmp_path: Path) -> None:
    path = _write(tmp_path / "x.py", "def f(:")
    for _ in range(2):
        with pytest.raises(ConfigError, match="x.py is not valid Python") as caught:
            source_of(path)
        assert caught.value.where == f"{path}:1"
