"""The journal: order, types, truncated and damaged lines."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from sluice.record.events import Artifact, Event, NodeFinished, Note, RunStarted
from sluice.record.journal import Journal, JournalError

pytestmark = pytest.mark.unit


def _notes(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Note)]


def test_events_are_read_in_order_with_their_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    written = [journal.append(Note(text=str(n))) for n in range(3)]
    assert Journal(tmp_path).events() == written
    times = [datetime.fromisoformat(event.at) for event in written]
    # Events of one second keep their order, and durations can be told from them.
    assert times == sorted(times) and len({*times}) == 3
    assert all(
        len(event.at) == len("2026-01-01T00:00:00.000000+00:00") for event in written
    )
    assert {time.utcoffset() for time in times} == {timedelta(0)}


def test_events_have_the_types_they_were_written_with(
    tmp_path: Path, run_started: RunStarted
) -> None:
    finished = NodeFinished(
        node="Make",
        state="ran",
        outputs={"out": [Artifact(1, "Model", "/m", {"a": [1, 2.5, None]})]},
        cache={"key": "k", "parts": {"code": "c"}},
    )
    journal = Journal(tmp_path)
    written = [journal.append(event) for event in (run_started, finished)]
    assert journal.events() == written


def test_without_a_file_there_are_no_events(tmp_path: Path) -> None:
    assert Journal(tmp_path).events() == []


def test_a_truncated_line_is_skipped(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    for text in ("first", "second"):
        journal.append(Note(text=text))
    path = tmp_path / "journal.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    assert _notes(journal.events()) == ["first"]
    journal.append(Note(text="third"))
    assert _notes(journal.events()) == ["first", "third"]


@pytest.mark.parametrize("damage", [b"\0\0\0\n", b"\xff\n", b"42\n", b"\n"])
def test_a_damaged_line_is_skipped(tmp_path: Path, damage: bytes) -> None:
    journal = Journal(tmp_path)
    journal.append(Note(text="first"))
    with journal.path.open("ab") as file:
        file.write(damage)
    journal.append(Note(text="second"))
    assert _notes(journal.events()) == ["first", "second"]


@pytest.mark.parametrize(
    "line",
    [
        # The beginning of a run as Sluice wrote it before events had types.
        {"event": "run_started", "command": "sluice run", "workers": 2},
        {"event": "of a later version"},
        {"text": "of nobody"},
    ],
)
def test_an_event_of_another_version_is_refused_by_name(
    tmp_path: Path, line: dict[str, object]
) -> None:
    journal = Journal(tmp_path)
    journal.path.write_text(json.dumps(line) + "\n")
    with pytest.raises(JournalError, match="written by another version of Sluice"):
        journal.events()


def test_keys_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.path.write_text('{"event": "note", "text": "seen", "colour": "red"}\n')
    assert journal.events() == [Note(text="seen")]


def test_two_journals_read_each_others_events_once(tmp_path: Path) -> None:
    one, other = Journal(tmp_path), Journal(tmp_path)
    one.append(Note(text="1"))
    other.append(Note(text="2"))
    assert _notes(one.new_events()) == _notes(other.new_events()) == ["1", "2"]
    other.append(Note(text="3"))
    assert _notes(one.new_events()) == ["3"]
