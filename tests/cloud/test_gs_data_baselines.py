"""Data baselines and verdicts on ``gs://``."""

from __future__ import annotations

from typing import Any

import pytest

from components.accept_data.data_baselines import (
    DataBaseline,
    Identity,
    SplitStatistics,
    find_data_baseline,
    read_entry,
    write_entry,
)
from components.accept_data.entry import Entry

pytestmark = pytest.mark.cloud


def files_in(bucket: Any, folder: str) -> list[str]:
    """Returns what lies in a folder; its own entry is none of that."""
    return [name for name in bucket.names(f"{folder}/") if name != f"{folder}/"]


def accept(store: str, name: str, data: bytes, minute: int) -> Entry:
    splits = ("train", "eval")
    at = f"2026-11-21T15:{minute:02}:00+00:00"
    return write_entry(
        store,
        Entry(name, f"fingerprint of {data!r}", at, "run", (), {}),
        {split: SplitStatistics(3, data + split.encode()) for split in splits},
    )


def test_an_entry_appears_whole_and_the_newest_is_found(bucket):
    store = bucket.uri("accepted")
    new = Identity("new", "fingerprint of the new data")
    assert find_data_baseline(store, new).record == ""

    # Broken off in front of its last object, it is not an entry yet.
    bucket.fail("POST", "name=accepted/7/record.json", 403, times=99)
    with pytest.raises(Exception, match="403") as caught:
        accept(store, "7", b"seven", 1)
    assert bucket.uri("accepted/7/record.json") in str(caught.value)
    assert len(files_in(bucket, "accepted/7")) == 2
    assert find_data_baseline(store, new) == DataBaseline("", ())

    bucket.server.heal()
    entry = accept(store, "7", b"seven", 1)
    record = f"{store}/7/record.json"
    known, statistics = read_entry(record)
    assert known == entry
    assert statistics["eval"] == b"seveneval"
    for number in range(8, 12):
        accept(store, str(number), b"%d" % number, number)
    accept(store, "5", b"five", 5)
    assert find_data_baseline(store, new).record == f"{store}/11/record.json"
    own = Identity("11", "fingerprint of other data of this span")
    assert find_data_baseline(store, own).record == f"{store}/10/record.json"

    bucket.remove(next(n for n in bucket.names("accepted/11/train-")))
    found = find_data_baseline(store, new)
    assert found.record == f"{store}/10/record.json"
    assert found.damaged[0].startswith(f"{store}/11 was skipped: ")

    # The earlier version of a span is replaced, the same data is not.
    replaced = accept(store, "10", b"ten, corrected", 30)
    assert accept(store, "10", b"ten, corrected", 40) == replaced
    assert find_data_baseline(store, new).record == f"{store}/10/record.json"
    assert len(files_in(bucket, "accepted/10")) == 3


def test_a_store_that_cannot_be_listed_is_not_an_empty_one(bucket):
    store = bucket.uri("accepted")
    accept(store, "7", b"seven", 1)
    bucket.fail("GET", r"/o\?.*prefix=accepted/", 403, times=99)
    with pytest.raises(Exception, match="403") as caught:
        find_data_baseline(store, Identity("new", "fingerprint"))
    assert store in str(caught.value)
