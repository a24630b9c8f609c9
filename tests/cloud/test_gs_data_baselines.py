"""Data baselines and verdicts on ``gs://``."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from components import artifacts
from components.accept_data.data_baselines import (
    DataBaseline,
    Identity,
    SplitStatistics,
    find_data_baseline,
    read_entry,
    write_entry,
)
from components.accept_data.entry import Entry
from components.artifacts import publish_verdict
from components.data_gate import executor as data_gate
from sluice.errors import DataError
from sluice.record.verdict import Check, Verdict

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


def test_two_writers_of_a_store(bucket):
    store = bucket.uri("accepted")
    together = threading.Barrier(2)

    def write(arguments: tuple[str, bytes, int]) -> None:
        together.wait()
        accept(store, *arguments)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(write, [("1", b"one", 1), ("2", b"two", 2)]))
        found = find_data_baseline(store, Identity("3", ""))
        assert found == DataBaseline(f"{store}/2/record.json", ())
        # Of the same span, but of other data: one of them wins, and is whole.
        for minute in range(10, 20):
            list(pool.map(write, [("9", b"%c%d" % (w, minute), minute) for w in b"ab"]))
            entry, _ = read_entry(f"{store}/9/record.json")
            assert f":{minute}:" in entry.accepted_at


def test_a_verdict_in_a_bucket_stops_the_gate(bucket):
    artifact = artifacts.DataVerdict()
    artifact.uri = bucket.uri("verdict/1")
    row = Check("feature 'fare'", "train", "0 to 9", None, 12, False, "12 is above 9")
    publish_verdict(Verdict("data", (row,)), artifact)
    assert artifact.get_int_custom_property("passed") == 0
    assert b"12 is above 9" in bucket.get("verdict/1/verdict.txt")
    with pytest.raises(DataError, match="12 is above 9"):
        data_gate.Executor().Do({"verdict": [artifact]}, {}, {})
