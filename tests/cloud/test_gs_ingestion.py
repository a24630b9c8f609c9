"""Span selection and ingestion on ``gs://``."""

from __future__ import annotations

import gzip
import time
from pathlib import Path
from typing import Any

import pytest

from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.ingestion import Ingestion
from components.tfrecord_gen.report import Report
from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.select_spans import select_spans
from components.tfrecord_gen.spans.span_choice import check_unchanged
from components.tfrecord_gen.spans.staleness import check_staleness
from components.tfrecord_gen.spans.window import SourceFile, Window
from pipeline.config.load import load_config
from pipeline.graph.choose_spans import choose_data, choose_spans
from runners.cache.run_inputs import run_inputs
from sample_data.tf_example import encode
from sluice.errors import DataError, UsageError
from sluice.storage.stat_cache import FileDigests
from sluice.tfrecords import tfrecord
from sluice.tfrecords.frame_encoding import frame
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.cloud

MARKED = CompleteWhen(marker="_SUCCESS")
ALWAYS = CompleteWhen()


def select(
    base: str,
    pattern: str = "{SPAN}/train-*",
    complete_when: CompleteWhen = ALWAYS,
    split: str | None = "train",
) -> Window:
    return select_spans(base, {split: pattern}, 2, complete_when, time.time())


def test_spans_are_selected_from_listings_of_several_pages(bucket):
    root = "trips [1] \u00e9 %41+?#*"
    for day in (1, 2, 3, 4):
        bucket.put(f"{root}/2024010{day}/")
        for part in range(7):
            bucket.put(f"{root}/2024010{day}/v1/part {part}")
        if day != 4:
            bucket.put(f"{root}/2024010{day}/v1/_SUCCESS")
    bucket.put(f"{root}/20240102/v2/part 0")
    bucket.put(f"{root}/20240102/v2/_SUCCESS")
    base = bucket.uri(root)
    pattern = "{YYYY}{MM}{DD}/v{VERSION}/part *"
    window = select(base, pattern, MARKED, split=None)
    assert [file.path for file in window.files] == [
        f"{base}/20240102/v2/part 0",
        *(f"{base}/20240103/v1/part {part}" for part in range(7)),
    ]
    assert [str(span) for span in window.spans] == [
        "span 2024-01-02, version 2",
        "span 2024-01-03, version 1",
    ]
    assert [span.why for span in window.skipped] == [
        f"no _SUCCESS in {base}/20240104/v1"
    ]
    assert any("pageToken=" in request for request in bucket.requests())


def test_a_span_is_quiet_by_the_time_that_the_bucket_says(bucket):
    bucket.put("1/train-0", age_s=7200)
    bucket.put("2/train-0", age_s=600)
    window = select(bucket.uri(), complete_when=CompleteWhen(quiet_for_s=3600))
    assert [file.path for file in window.files] == [bucket.uri("1/train-0")]
    assert "2/train-0 was changed 60" in window.skipped[0].why
    with pytest.raises(DataError, match="too old[\\s\\S]*span 1 is 2 h old") as caught:
        check_staleness(window, 1, time.time())
    assert f"gs://{bucket.name}" in str(caught.value)


def test_a_config_finds_its_files_and_sees_new_ones(bucket, tmp_path):
    for name in ("train-0", "train-1", "eval-0", "test-0", "manifest.json", "notes"):
        bucket.put(f"digits/{name}", b"{}")
    config = load_config("digits", overrides=[f"data.dir={bucket.uri('digits')}"])
    (tmp_path / "state").mkdir()

    def data() -> dict[str, str]:
        digests = FileDigests(tmp_path / "digests")
        choice = choose_spans(config)
        serving = str(tmp_path / "serving")
        return run_inputs(config, tmp_path, serving, choice, digests).data

    window = choose_data(config)
    assert [(file.split, file.path) for file in window.files] == [
        ("train", bucket.uri("digits/train-0")),
        ("train", bucket.uri("digits/train-1")),
        ("eval", bucket.uri("digits/eval-0")),
        ("test", bucket.uri("digits/test-0")),
    ]
    before = data()
    assert data() == before
    assert before["train: train-0"].startswith("2 ")
    time.sleep(0.01)
    bucket.put("digits/train-0", b"[]")
    changed = data()
    assert {name for name in changed if changed[name] != before[name]} == {
        "train: train-0"
    }

    bucket.remove("digits/eval-0")
    with pytest.raises(
        UsageError, match="no file matches the pattern 'eval-\\*'"
    ) as caught:
        choose_data(config)
    assert bucket.uri("digits") in str(caught.value)


def records(count: int, start: int = 0) -> list[bytes]:
    return [encode({"id": [start + n], "x": [0.5]}) for n in range(count)]


def framed(some: list[bytes]) -> bytes:
    return b"".join(map(frame, some))


def shard_names(bucket: Any, folder: str) -> list[str]:
    names = bucket.names(f"{folder}/")
    return [name.removeprefix(f"{folder}/") for name in names if name != f"{folder}/"]


def records_in(content: bytes, tmp_path: Path) -> list[bytes]:
    path = tmp_path / "shard.gz"
    path.write_bytes(content)
    return list(tfrecord.read(path))


def take(bucket: Any, *names: str, split: str | None = "train", **options: Any) -> Any:
    files = tuple(SourceFile(bucket.uri(name), split) for name in names)
    splits = options.pop("splits", ("train", "eval"))
    workers = options.pop("workers", 4)
    return ingest(
        Ingestion(files, **options),
        {name: bucket.uri(f"out/Split-{name}") for name in splits},
        bucket.uri("out/quarantine"),
        workers=workers,
    )


def test_valid_and_damaged_files_are_ingested(bucket, tmp_path):
    big = [parse(record) for record in records(30)]
    for number, example in enumerate(big):
        data = number.to_bytes(2, "big") + b"\0" * 70_000
        example.features.feature["blob"].bytes_list.value.append(data)
    whole = [example.SerializeToString() for example in big]
    sound = gzip.compress(framed(whole), 0, mtime=0)
    assert len(sound) > 1 << 20
    broken = bytearray(framed(records(5, 100)))
    broken[len(broken) // 2] ^= 255
    bucket.put("in/copied.gz", sound)
    bucket.put("in/plain", framed(records(4, 50)))
    bucket.put("in/broken", bytes(broken))
    bucket.put("in/cut.gz", gzip.compress(framed(records(9, 200)), 0)[:-60])
    bucket.put("in/empty", b"")
    names = ["in/copied.gz", "in/plain", "in/broken", "in/cut.gz", "in/empty"]
    report = take(bucket, *names)

    assert report.errors == {"checksum": 1, "compression": 1, "empty_file": 1}
    assert {error.path for error in report.first_errors} == {
        bucket.uri(name) for name in names[2:]
    }
    counts = {file.path: file.records for file in report.files}
    assert counts[bucket.uri("in/copied.gz")] == 30
    assert counts[bucket.uri("in/plain")] == 4
    assert counts[bucket.uri("in/broken")] == 4
    shards = shard_names(bucket, "out/Split-train")
    assert shards[0] == f"data_tfrecord-00000-of-{len(shards):05d}.gz"
    assert bucket.get(f"out/Split-train/{shards[0]}") == sound
    written = [
        record
        for shard in shards
        for record in records_in(bucket.get(f"out/Split-train/{shard}"), tmp_path)
    ]
    assert len(written) == report.splits["train"].records == report.records
    assert written[30:34] == records(4, 50)
    assert shard_names(bucket, "out/Split-eval") == ["data_tfrecord-00000-of-00001.gz"]
    assert shard_names(bucket, "out/quarantine") == [
        "quarantine.tfrecord.gz",
        "report.json",
    ]
    assert Report.load(bucket.uri("out/quarantine")) == report
    bad = records_in(bucket.get("out/quarantine/quarantine.tfrecord.gz"), tmp_path)
    files = [parse(one).features.feature["file"].bytes_list.value[0] for one in bad]
    assert files == [bucket.uri(name).encode() for name in names[2:]]


def test_an_object_that_vanishes_before_it_is_read_is_named(bucket):
    for name in ("train-0", "train-1"):
        bucket.put(name, framed(records(3)))
    assert len(select(bucket.uri(), "train-*").files) == 2
    # Between the look at its size and the first byte.
    bucket.fail("GET", "/train-1.*alt=media", 404)
    with pytest.raises(UsageError, match="cannot be read") as caught:
        take(bucket, "train-0", "train-1")
    assert f"where:    {bucket.uri('train-1')}" in str(caught.value)
    assert "another writer has changed it" in str(caught.value)


def test_a_file_of_another_generation_than_the_chosen_one_is_not_read(
    bucket,
):
    """It has the same size, and a time that says nothing."""
    bucket.put("train-0", framed(records(3)))
    window = select(bucket.uri(), "train-*")
    check_unchanged(window)
    bucket.put("train-0", framed(records(3, 1)), age_s=60)
    (file,) = window.files
    assert file.generation is not None
    bucket.requests()

    with pytest.raises(UsageError, match="another writer has changed it"):
        ingest(
            Ingestion(window.files),
            {"train": bucket.uri("out/Split-train")},
            bucket.uri("out/quarantine"),
            workers=1,
        )
    assert not [line for line in bucket.requests() if "/train-0?alt=media" in line]
    with pytest.raises(DataError, match="rewritten since"):
        check_unchanged(window)


def test_shards_of_a_failed_attempt_are_removed(bucket):
    """Found: a repeated task has the same folder, and other files may be there."""
    bucket.put("train-0", framed(records(3)))
    bucket.put("out/Split-train/data_tfrecord-00002-of-00003.gz", b"of other files")
    files = (SourceFile(bucket.uri("train-0"), "train"),)
    ingest(
        Ingestion(files),
        {"train": bucket.uri("out/Split-train")},
        bucket.uri("out/quarantine"),
        workers=1,
    )
    folder = "out/Split-train/"
    assert bucket.names(folder) == [f"{folder}data_tfrecord-00000-of-00001.gz"]


@pytest.mark.parametrize("status", [503, 403])
def test_a_listing_that_fails_is_no_empty_directory(bucket, status):
    bucket.put("trips/1/train-0")
    bucket.fail("GET", r"/o\?.*prefix=trips/", status, times=99)
    with pytest.raises(UsageError, match="directory of the data") as caught:
        select(bucket.uri("trips"))
    assert f"where:    {bucket.uri('trips')}" in str(caught.value)
    assert str(status) in str(caught.value)
