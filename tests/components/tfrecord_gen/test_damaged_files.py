"""Every damage of a file is located, and no other record is lost."""

from __future__ import annotations

import os
import subprocess
import sys
import zlib

import pytest

from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen.scan import scan
from sample_data.tf_example import encode
from sluice.tfrecords.frame_encoding import frame
from tests.kit.ingestion import (
    COMPRESSIONS,
    DAMAGES,
    FILES,
    RECORDS,
    check_damage,
    framed,
    header,
    shard,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", DAMAGES)
def test_a_damage_is_located(room, name, compression, monkeypatch):
    # Large gzip files are copied, and written anew where a record is bad.
    size = 1 if compression == "gzip" else 1 << 20
    monkeypatch.setattr(ingest_module, "_SHARD_FROM_BYTES", size)
    content = COMPRESSIONS[compression](DAMAGES[name].content)
    check_damage(room, DAMAGES[name], content)


@pytest.mark.parametrize("name", FILES)
def test_a_damaged_file_is_located(room, name):
    check_damage(room, FILES[name], FILES[name].content)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("name", ["a.tfrecord", "a.gz", "train-0"])
def test_compression_is_detected_from_the_content(room, compression, name):
    wanted = [encode({"x": [bytes(n)]}) for n in (5_000_000, 1, 127, 128, 16_390, 0)]
    wanted += [b"", *RECORDS * 50]
    padding = bytes(700_000 * (compression != "none"))
    path = room.put(name, shard(wanted, compression) + padding)
    found = list(scan(path))
    assert [record.data for record in found] == wanted
    assert [record.number for record in found] == list(range(1, len(wanted) + 1))
    content = framed(wanted)
    for record in found[-99:]:
        assert content[record.offset :].startswith(frame(record.data or b""))


def test_what_comes_before_the_damage_of_a_gzip_stream_is_kept(room):
    wanted = [encode({"noise": [os.urandom(2000)]}) for _ in range(200)]
    data = shard(wanted, "gzip")
    at = len(data) // 2
    report = room.ingest(room.put("a", data[:at] + b"\xff" * 1000 + data[at + 1000 :]))
    found = room.records()
    assert 60 < len(found) <= 100
    assert found == wanted[: len(found)]
    assert report.corrupt_fraction == pytest.approx(1 - len(found) / 200, abs=0.05)


_PEAK = r"""
import re, sys
from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen.scan import scan
count = sum(1 for _ in scan(sys.argv[1]))
# Not getrusage, which counts the process that this one was forked from.
print(count, re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
assert "tensorflow" not in sys.modules and "tfx" not in sys.modules
"""
_IMAGE = frame(encode({"image": [bytes(range(256)) * 98]}))


@pytest.mark.parametrize(
    ("start", "repeated", "times", "items"),
    [
        (b"", bytes(1 << 20), 400, 1),
        (header(400 << 20), bytes(1 << 20), 400, 1),
        (b"", _IMAGE, 8000, 8000),
    ],
    ids=["bomb", "beyond the limit", "many"],
)
def test_memory_is_bounded(room, start, repeated, times, items):
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    parts = [packer.compress(start)]
    parts += [packer.compress(repeated) for _ in range(times)]
    path = room.put("a.gz", b"".join(parts) + packer.flush())
    command = [sys.executable, "-c", _PEAK, path]
    found = subprocess.run(command, capture_output=True, check=True)
    count, peak_kb = map(int, found.stdout.split())
    assert count == items
    assert peak_kb < 100_000
