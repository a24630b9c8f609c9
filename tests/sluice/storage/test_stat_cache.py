"""Caches of file digests and imports: a file is read again if it may have changed."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path
from typing import Any

import pytest

from sluice.storage import digest, stat_cache
from sluice.storage.stat_cache import (
    FileDigests,
    source_of,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files whose content was read."""
    seen: list[Path] = []
    of_file = digest.of_file

    def noted(path: Path) -> str:
        seen.append(path)
        return of_file(path)

    monkeypatch.setattr(digest, "of_file", noted)
    return seen


def _old_file(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    hour_ago = time.time() - 3600
    os.utime(path, (hour_ago, hour_ago))
    return path


def test_an_unchanged_file_is_read_once(tmp_path, read):
    path = _old_file(tmp_path / "a", b"one")
    memory = tmp_path / "memory.json"
    for _ in range(2):
        digests = FileDigests(memory)
        assert digests.of(path) == digest.of_bytes(b"one")
        digests.save()
    assert read == [path]


def test_same_size_and_time_but_another_file(tmp_path, read):
    path = _old_file(tmp_path / "a", b"one")
    digests = FileDigests(tmp_path / "memory.json")
    digests.of(path)
    os.replace(_old_file(tmp_path / "b", b"two"), path)
    os.utime(path, ns=(0, 0))
    assert digests.of(path) == digest.of_bytes(b"two")


def test_a_file_written_a_moment_ago_is_not_trusted(tmp_path, read):
    """It may change again without its time changing."""
    path = tmp_path / "a"
    path.write_bytes(b"one")
    digests = FileDigests(tmp_path / "memory.json")
    digests.of(path)
    status = path.stat()
    path.write_bytes(b"two")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert digests.of(path) == digest.of_bytes(b"two")
    assert len(read) == 2


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has not looked at any source."""
    monkeypatch.delenv("SLUICE_SOURCE_FILES", raising=False)
    monkeypatch.setattr(stat_cache, "_sources", None)


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


def test_the_cache_file_is_shared_between_processes(tmp_path, parsed, monkeypatch):
    path, memory = _old_file(tmp_path / "x.py", b"import a"), tmp_path / "memory.json"
    stat_cache.use_sources_file(memory)
    first = source_of(path)
    stat_cache.save_sources()
    monkeypatch.setattr(stat_cache, "_sources", None)
    monkeypatch.setenv("SLUICE_SOURCE_FILES", str(memory))
    assert source_of(path) == first
    assert parsed == [b"import a"]

    _old_file(path, b"import b")
    assert source_of(path).imports == [(0, "b", [])]
    assert source_of(path).digest != first.digest
