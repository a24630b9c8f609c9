"""The journal keeps what was written, whatever cuts it short."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sluice.record.journal import Journal

pytestmark = pytest.mark.unit


def test_events_come_back_in_order_with_their_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    written = [journal.append({"event": "note", "text": str(n)}) for n in range(3)]
    assert Journal(tmp_path).events() == written
    times = [datetime.fromisoformat(event["at"]) for event in written]
    # Events of one second keep their order, and durations can be told from them.
    assert times == sorted(times) and len({*times}) == 3
    assert all(
        len(event["at"]) == len("2026-01-01T00:00:00.000000+00:00") for event in written
    )
    assert {time.utcoffset() for time in times} == {timedelta(0)}


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
