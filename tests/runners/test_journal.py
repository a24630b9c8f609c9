"""The journal keeps what was written, whatever cuts it short."""

from __future__ import annotations

from pathlib import Path

import pytest

from runners.local.journal import Journal

pytestmark = pytest.mark.unit


def test_events_come_back_in_order_with_their_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    written = [journal.append({"event": "note", "text": str(n)}) for n in range(3)]
    assert Journal(tmp_path).events() == written
    assert all(event["at"].endswith("+00:00") for event in written)


def test_without_a_file_there_are_no_events(tmp_path: Path) -> None:
    assert Journal(tmp_path).events() == []


def test_a_line_cut_short_costs_only_itself(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for text in ("first", "second"):
        journal.append({"event": "note", "text": text})
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    journal.append({"event": "note", "text": "third"})
    assert [event["text"] for event in journal.events()] == ["first", "third"]
