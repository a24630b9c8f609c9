"""The ingestion report."""

from __future__ import annotations

import json
import random

import pytest

from components.tfrecord_gen.spans.window import SkippedSpan, SourceFile
from sample_data.tf_example import encode
from sluice.tfrecords.frame_encoding import frame

pytestmark = pytest.mark.unit


def test_a_lost_tail_counts_by_its_bytes(room, make):
    wanted = make.examples(100)
    frames = [frame(data) for data in wanted]
    content = b"".join(frames[:50]) + b"\xff" * 12 + b"".join(frames[50:])[12:]

    report = room.ingest(room.put("a", content))

    lost = len(content) - sum(map(len, frames[:50]))
    assert (report.records, report.quarantined, report.lost_bytes) == (50, 1, lost)
    assert report.bytes == len(content)
    assert report.corrupt_fraction == pytest.approx(lost / len(content))


def test_a_stream_that_breaks_off_loses_an_estimated_share(room, make):
    content = make.framed(
        [encode({"x": [random.Random(n).randbytes(500)]}) for n in range(2000)]
    )
    data = make.gzipped(content)
    half = len(data) // 2

    report = room.ingest(room.put("a", data[:half] + b"\xff" * 64 + data[half + 64 :]))

    assert report.corrupt_fraction > 0.4


def test_five_faults_of_a_kind_are_named_and_all_are_counted(room, make):
    paths = [room.put(f"{n}", make.framed([b"junk", b"more"])) for n in range(4)]

    report = room.ingest(*paths)

    assert dict(report.errors) == {"not_example": 8}
    assert [(error.path, error.record) for error in report.first_errors] == [
        (path, number) for path in paths for number in (1, 2)
    ][:5]


def test_spans_are_in_the_report(room, make):
    files = tuple(
        SourceFile(
            room.put(f"{span}", make.shard(make.examples(2, span))), "train", span, 3
        )
        for span in (8, 5)
    )
    skipped = (SkippedSpan(9, "span 9", "no _SUCCESS"),)

    report = room.ingest_files(files, ("train",), skipped_spans=skipped)

    assert (report.spans, report.skipped_spans) == ((5, 8), skipped)
    assert [(file.span, file.version) for file in report.files] == [(8, 3), (5, 3)]


def test_the_report_has_the_documented_json(room, make):
    room.ingest(room.put("a", make.shard(make.examples(4))[:-1]))

    fields = json.loads((room.out / "quarantine" / "report.json").read_text())

    assert fields["schema_version"] == 2
    assert fields["splits"] == {"train": {"records": 3, "shards": 1}}
    assert fields["errors"] == {"truncated": 1}
    assert set(fields["first_errors"][0]) == {
        "path",
        "record",
        "offset",
        "kind",
        "reason",
    }
    assert set(fields["files"][0]) == {
        "path",
        "span",
        "version",
        "split",
        "size_bytes",
        "sha256",
        "compression",
        "records",
        "quarantined",
        "lost_bytes",
        "content_bytes",
        "content_crc32c",
    }


def test_a_report_of_another_version_is_refused(room, make):
    from components.tfrecord_gen.report import Report

    fields = room.ingest(room.put("a", make.shard(make.examples(1)))).to_dict()

    with pytest.raises(ValueError, match="a report of version 3, not 2"):
        Report.from_dict(fields | {"schema_version": 3})
    with pytest.raises(ValueError, match="for Report\nfiles"):
        Report.from_dict({"schema_version": 2})


def test_a_destroyed_file_counts_as_a_file(room, make):
    good = room.put("a", make.shard(make.examples(200)))

    report = room.ingest(good, room.put("b", b""))

    assert (report.records, report.corrupt_fraction) == (200, 0.5)
