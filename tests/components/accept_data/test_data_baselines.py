"""Data baselines: which entry new data is compared with."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from tensorflow_metadata.proto.v0 import statistics_pb2

from components.data_baselines import (
    RECORD_FILE,
    Entry,
    Identity,
    entry_before,
    find_data_baseline,
    holds,
    identify,
    read_entry,
    write_entry,
)
from components.tfrecord_gen.ingestion_report import Report
from sluice.errors import DataError
from sluice.storage.storage import LocalStorage
from tests.kit.ingestion_reports import a_file, a_report

pytestmark = pytest.mark.unit

ONE, TWO, THREE = (Identity(str(n), f"fingerprint {n}") for n in (1, 2, 3))
STATISTICS = statistics_pb2.DatasetFeatureStatisticsList()
STATISTICS.datasets.add(num_examples=12)


def _accept(store: Path, identity: Identity, splits: dict | None = None) -> Entry:
    entry = Entry(
        name=f"span {identity.span}",
        accepted_at="2026-11-21T15:00:00+00:00",
        run_id="run",
        spans=(0, 1),
        splits=splits or {"train": 12},
        override="known outage",
    )
    content = STATISTICS.SerializeToString()
    write_entry(str(store), identity, entry, dict.fromkeys(entry.splits, content))
    return entry


def _baseline(store: Path, identity: Identity) -> str:
    folder = find_data_baseline(str(store), identity)
    return Path(folder).name.split("-")[1] if folder else ""


def test_an_entry_is_read_back_with_its_statistics(tmp_path):
    entry = _accept(tmp_path, ONE)
    folder = find_data_baseline(str(tmp_path), TWO)
    assert read_entry(folder) == (entry, {"train": STATISTICS})


def test_the_baseline_is_the_newest_other_data(tmp_path):
    assert _baseline(tmp_path / "none", ONE) == ""
    for identity in (TWO, ONE, THREE):
        _accept(tmp_path, identity)
    assert _baseline(tmp_path, Identity("4", "new")) == "3"
    assert _baseline(tmp_path, THREE) == "1"
    assert _baseline(tmp_path, Identity("3", "second version")) == "1"
    assert _baseline(tmp_path, Identity("9", THREE.fingerprint)) == "1"
    # Data without spans is told apart by its content alone.
    _accept(tmp_path, Identity("data", "a"))
    assert _baseline(tmp_path, Identity("data", "b")) == "data"
    assert _baseline(tmp_path, Identity("data", "a")) == "3"


def test_only_the_folder_of_the_baseline_is_read(tmp_path, monkeypatch):
    """Found: each run read the record of each acceptance, on gs:// one request each."""
    for number in range(20):
        _accept(tmp_path, Identity(str(number), f"fingerprint {number}"))
    asked = set()
    stat = LocalStorage.stat

    def count(storage, uri):
        asked.add(uri)
        return stat(storage, uri)

    monkeypatch.setattr(LocalStorage, "stat", count)
    monkeypatch.setattr(LocalStorage, "read", lambda self, uri: pytest.fail(uri))
    assert _baseline(tmp_path, Identity("20", "new")) == "19"
    assert len(asked) == 1


@pytest.mark.parametrize("damaged", [RECORD_FILE, "train.pb"])
def test_a_damaged_entry_is_named(tmp_path, damaged):
    _accept(tmp_path, ONE)
    folder = find_data_baseline(str(tmp_path), TWO)
    (Path(folder) / damaged).write_bytes(b"\xff{")
    with pytest.raises(DataError, match="delete the folder") as caught:
        read_entry(folder)
    assert caught.value.where == f"{folder}/{damaged}"


def test_data_is_held_where_it_is_the_newest(tmp_path):
    """Found: data that came back was compared with what came between."""
    store = tmp_path / "accepted"
    report, other = _report(tmp_path, "a"), _report(tmp_path, "b")
    assert not holds(str(store), report)
    for accepted, held in ((report, True), (other, False), (report, True)):
        _accept(store, identify(accepted))
        assert holds(str(store), report) is held
    assert not holds(str(store), _report(tmp_path, "a", train=13))


def _report(folder: Path, *names: str, train: int = 12, **fields: Any) -> Report:
    files = [a_file(folder / name, [{"x": [name.encode()]}]) for name in names]
    return a_report(*files, splits={"train": train}, **fields)


def test_the_identity_is_the_content(tmp_path):
    identity = identify(_report(tmp_path, "a", "b"))
    assert identity == identify(_report(tmp_path / "copy", "b", "a"))
    assert identity.fingerprint != identify(_report(tmp_path, "a", "c")).fingerprint
    assert identity.span == "data"
    assert identify(_report(tmp_path, "a", spans=(6, 7))).span == "7"


def test_the_data_of_a_model_is_what_was_accepted_before_its_push(tmp_path):
    _accept(tmp_path, ONE)
    pushed_at = datetime.now(timezone.utc)
    _accept(tmp_path, TWO)
    assert Path(entry_before(str(tmp_path), pushed_at)).name.split("-")[1] == "1"
    never = datetime(2020, 1, 1, tzinfo=timezone.utc)
    assert entry_before(str(tmp_path), never) == ""
