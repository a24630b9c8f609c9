"""Data baselines on ``gs://``."""

from __future__ import annotations

from typing import Any

import pytest

from components.data_baselines import (
    Entry,
    Identity,
    find_data_baseline,
    read_entry,
    write_entry,
)

pytestmark = pytest.mark.cloud

NEW = Identity("99", "new")


def _accept(store: str, span: str) -> Any:
    entry = Entry(
        name=f"span {span}",
        accepted_at="2026-11-21T15:00:00+00:00",
        run_id="run",
        spans=(int(span),),
        splits={"train": 3, "eval": 1},
        override=None,
    )
    write_entry(
        store, Identity(span, f"fingerprint {span}"), entry, {"train": b"", "eval": b""}
    )
    return entry


def test_an_entry_appears_whole_and_the_newest_is_found(bucket):
    store = bucket.uri("accepted")
    assert find_data_baseline(store, NEW) == ""
    # Broken off in front of its last object, it is not an entry yet.
    bucket.fail("POST", "name=accepted/.*/record.json", 403, times=99)
    with pytest.raises(Exception, match="403"):
        _accept(store, "7")
    assert len([x for x in bucket.names("accepted/") if x.endswith(".pb")]) == 2
    assert find_data_baseline(store, NEW) == ""

    bucket.server.heal()
    _accept(store, "5")
    entry = _accept(store, "8")
    found, statistics = read_entry(find_data_baseline(store, NEW))
    assert (found, set(statistics)) == (entry, {"train", "eval"})
    own = Identity("8", "other data of this span")
    assert read_entry(find_data_baseline(store, own))[0].name == "span 5"


def test_a_store_that_cannot_be_listed_is_not_an_empty_one(bucket):
    store = bucket.uri("accepted")
    _accept(store, "7")
    bucket.fail("GET", r"/o\?.*prefix=accepted/", 403, times=99)
    with pytest.raises(Exception, match="403") as caught:
        find_data_baseline(store, NEW)
    assert store in str(caught.value)
