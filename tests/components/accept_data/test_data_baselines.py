"""Data baselines: writing, selection of the newest other one, damaged entries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from components.accept_data.data_baselines import (
    RECORD_FILE,
    DataBaseline,
    Identity,
    SplitStatistics,
    find_data_baseline,
    identify,
    read_entry,
    write_entry,
)
from components.accept_data.entry import Entry
from components.tfrecord_gen.report import FileReport, Report
from sluice.storage import atomic
from sluice.storage.storage import Storage

pytestmark = pytest.mark.unit

ONE, TWO, THREE = (Identity(str(n), f"fingerprint-{n}") for n in (1, 2, 3))


def _entry(identity: Identity, minute: int, **changes: Any) -> Entry:
    at = f"2026-11-21T15:{minute:02}:00+00:00"
    facts = {"run_id": "run", "spans": (), "splits": {}, "accepted_at": at, **changes}
    return Entry(identity.name, identity.fingerprint, **facts)


def _write(store: Path, identity: Identity, minute: int, **changes: Any) -> Entry:
    statistics = changes.pop("statistics", identity.fingerprint.encode())
    return write_entry(
        str(store),
        _entry(identity, minute, **changes),
        {"train": SplitStatistics(12, statistics)},
    )


def _baseline(store: Path, identity: Identity) -> str:
    return Path(find_data_baseline(str(store), identity).record).parent.name


def test_an_entry_is_read_back_with_its_statistics(tmp_path):
    entry = _write(tmp_path, ONE, 1, spans=(0, 1), override="known outage")
    record = str(tmp_path / "1" / RECORD_FILE)
    assert read_entry(record) == (entry, {"train": b"fingerprint-1"})
    assert entry.override == "known outage" and entry.spans == (0, 1)
    assert entry.splits["train"].examples == 12


def test_the_baseline_is_the_newest_that_is_not_this_data(tmp_path):
    assert find_data_baseline(str(tmp_path / "none"), ONE).record == ""
    _write(tmp_path, TWO, 1)
    _write(tmp_path, ONE, 2)
    _write(tmp_path, THREE, 3)
    assert _baseline(tmp_path, Identity("4", "new")) == "3"
    assert _baseline(tmp_path, THREE) == "1"


def test_neither_an_earlier_version_of_a_span_nor_renamed_data_counts(tmp_path):
    _write(tmp_path, ONE, 1)
    _write(tmp_path, TWO, 2)
    assert _baseline(tmp_path, Identity("2", "second version")) == "1"
    assert _baseline(tmp_path, Identity("9", TWO.fingerprint)) == "1"


def test_data_that_is_accepted_again_does_not_become_the_newest(tmp_path):
    first = _write(tmp_path, ONE, 1)
    _write(tmp_path, TWO, 2)
    assert _write(tmp_path, ONE, 3) == first
    assert _baseline(tmp_path, THREE) == "2"


def test_the_same_files_in_other_splits_rewrite_the_entry(tmp_path):
    first = _write(tmp_path, ONE, 1)
    _write(tmp_path, TWO, 2)
    again = write_entry(
        str(tmp_path),
        _entry(ONE, 3, run_id="other"),
        {"train": SplitStatistics(9, b"nine"), "eval": SplitStatistics(3, b"three")},
    )
    assert {split: item.examples for split, item in again.splits.items()} == {
        "train": 9,
        "eval": 3,
    }
    assert again.accepted_at == first.accepted_at
    assert _baseline(tmp_path, THREE) == "2"


def test_entries_of_the_same_second_are_ordered_by_span(tmp_path):
    nine, ten = Identity("9", "nine"), Identity("10", "ten")
    _write(tmp_path, nine, 1, spans=(9,))
    _write(tmp_path, ten, 1, spans=(10,))
    assert _baseline(tmp_path, THREE) == "10"


def test_two_concurrent_writers_leave_a_complete_entry(tmp_path):
    """The second replaces the entry while the first has not yet named its files."""
    real = Storage.write_atomically
    _write(tmp_path, ONE, 1)
    newer = Identity("1", "third version")

    def slow(storage: Any, path: str, data: bytes, **options: Any) -> None:
        if path.endswith(RECORD_FILE) and b"second version" in data and not calls:
            calls.append(path)
            _write(tmp_path, newer, 3)
        real(storage, path, data, **options)

    calls: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Storage, "write_atomically", slow)
        _write(tmp_path, Identity("1", "second version"), 2)
    found = find_data_baseline(str(tmp_path), TWO)
    assert found.damaged == ()
    assert read_entry(found.record)[0].fingerprint == "second version"
    # Nothing is left of the two that were replaced.
    assert len(list((tmp_path / "1").iterdir())) == 2


def _change(folder: Path, key: str, value: Any) -> None:
    path = folder / RECORD_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda folder: (folder / RECORD_FILE).write_text("{"), "Expecting property"),
        (lambda folder: _change(folder, "accepted_at", None), "not a record"),
        (lambda folder: _change(folder, "spans", ["one"]), "not a record"),
        (lambda folder: _change(folder, "splits", {"train": {}}), "not a record"),
        (lambda folder: (folder / RECORD_FILE).write_bytes(b"\xff"), "codec"),
        (lambda folder: next(folder.glob("*.pb")).unlink(), "No such file"),
        (
            lambda folder: next(folder.glob("*.pb")).write_bytes(b"other"),
            "has changed since it was written",
        ),
    ],
)
def test_a_damaged_entry_is_named_and_skipped(tmp_path, damage, reason):
    _write(tmp_path, ONE, 1)
    _write(tmp_path, TWO, 2)
    damage(tmp_path / "2")
    found = find_data_baseline(str(tmp_path), THREE)
    assert Path(found.record).parent.name == "1"
    (line,) = found.damaged
    assert line.startswith(f"{tmp_path / '2'} was skipped: ") and reason in line
    _write(tmp_path, TWO, 4)
    assert find_data_baseline(str(tmp_path), THREE).damaged == ()


def test_an_interrupted_writer_leaves_no_entry(tmp_path, monkeypatch):
    def full(path: str, data: bytes) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic, "create", full)
    with pytest.raises(OSError, match="No space left"):
        _write(tmp_path, ONE, 1)
    found = find_data_baseline(str(tmp_path), TWO)
    # It warns of no damage: there is no entry yet.
    assert found == DataBaseline("", ())


def _report(*digests: str, spans: tuple[int, ...] = ()) -> Report:
    files = tuple(
        FileReport(
            path=f"/somewhere/{index}",
            span=None,
            version=None,
            split="train",
            size_bytes=1,
            sha256=sha256,
            compression="none",
            records=1,
            quarantined=0,
            lost_bytes=0,
        )
        for index, sha256 in enumerate(digests)
    )
    return Report(files, {}, 1, 0, 0, 1, 0.0, spans=spans)


def test_the_identity_is_the_content():
    identity = identify(_report("a", "b"))
    assert identity == identify(_report("b", "a"))
    assert identity.fingerprint != identify(_report("a", "c")).fingerprint
    assert identity.name == f"data-{identity.fingerprint[:12]}"
    assert identify(_report("a", spans=(6, 7))).name == "7"
