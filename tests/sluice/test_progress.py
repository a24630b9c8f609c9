"""Progress files between processes."""

from __future__ import annotations

import pytest

from sluice import progress

pytestmark = pytest.mark.unit


def test_lines_are_read_once(tmp_path, monkeypatch):
    path = tmp_path / "Trainer.jsonl"
    monkeypatch.setenv("SLUICE_PROGRESS_FILE", str(path))
    assert progress.read(path) == ([], 0)
    progress.report(event="epoch", epoch=1)
    lines, offset = progress.read(path)
    assert lines == [{"event": "epoch", "epoch": 1}]
    progress.report(event="epoch", epoch=2)
    progress.note("restarted", event="restarted")
    assert progress.read(path, offset)[0] == [
        {"event": "epoch", "epoch": 2},
        {"event": "restarted", "line": "restarted", "note": True},
    ]


def test_an_incomplete_line_is_read_later(tmp_path):
    path = tmp_path / "p"
    path.write_bytes(b'{"a": 1}\n{"b"')
    lines, offset = progress.read(path)
    assert (lines, offset) == ([{"a": 1}], 9)
    path.write_bytes(b'{"a": 1}\n{"b": 2}\n')
    assert progress.read(path, offset)[0] == [{"b": 2}]
