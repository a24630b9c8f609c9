"""Span selection and ingestion on ``gs://``."""

from __future__ import annotations

import time

import pytest

from components.tfrecord_gen.input_files import check_staleness
from components.tfrecord_gen.select_spans import select_spans
from components.tfrecord_gen.settings import CompleteWhen, Ingestion
from sluice.errors import DataError, UsageError
from tests.kit.ingestion import (
    Room,
    examples,
    framed,
    shard,
)

pytestmark = pytest.mark.cloud


@pytest.fixture
def room(bucket):
    return Room(bucket.uri("room"))


def select(base, pattern="{SPAN}/train-*", complete_when=None):
    when = complete_when or CompleteWhen()
    patterns = {"train": pattern}
    settings = Ingestion(base=base, patterns=patterns, window=2, complete_when=when)
    return select_spans(settings, time.time())


def test_a_span_is_quiet_by_the_time_that_the_bucket_says(bucket):
    bucket.put("1/train-0", age_s=7200)
    bucket.put("2/train-0", age_s=600)
    window = select(bucket.uri(), complete_when=CompleteWhen(quiet_for_s=3600))
    assert [file.path for file in window.files] == [bucket.uri("1/train-0")]
    assert "2/train-0 was changed 60" in window.skipped[0]
    with pytest.raises(DataError, match="too old: span 1 is of .* UTC, 2 h ago"):
        check_staleness(window, 1, time.time())


def test_an_object_that_vanishes_before_it_is_read_is_named(bucket, room):
    paths = [room.put(name, shard(examples(3))) for name in ("train-0", "train-1")]
    # Between the look at its size and the first byte.
    bucket.fail("GET", "/train-1.*alt=media", 404)
    with pytest.raises(UsageError, match="cannot be read") as caught:
        room.ingest(*paths)
    assert caught.value.where == paths[1]


def test_a_file_of_another_generation_than_the_chosen_one_is_not_read(bucket, room):
    """It has the same size, and a time that says nothing."""
    bucket.put("train-0", framed(examples(3)))
    window = select(bucket.uri(), "train-*")
    window.check_unchanged()
    bucket.put("train-0", framed(examples(3, 1)), age_s=60)
    bucket.requests()
    with pytest.raises(UsageError, match="another writer has changed it"):
        room.ingest_files(window.files, ("train",))
    assert not [line for line in bucket.requests() if "/train-0?alt=media" in line]
    with pytest.raises(DataError, match="changed since the run chose"):
        window.check_unchanged()


def test_shards_of_a_failed_attempt_are_removed(bucket, room):
    """Found: a repeated task has the same folder, and other files may be there."""
    bucket.put("room/out/Split-train/data_tfrecord-00002-of-00003.gz", b"of others")
    room.ingest(room.put("train-0", framed(examples(3))))
    assert room.shards() == [f"{room.out}/Split-train/data_tfrecord-00000-of-00001.gz"]
