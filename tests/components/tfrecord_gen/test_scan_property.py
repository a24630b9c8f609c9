"""Property tests: every mutation of a shard is reported, or harmless."""

from __future__ import annotations

import gzip
import json
import signal
import tempfile
from contextlib import contextmanager
from hashlib import sha256

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.kit.ingestion import Room, examples, framed, shard

pytestmark = pytest.mark.unit

NAME = "train-00000-of-00001.gz"


@contextmanager
def ends_within(seconds: int):
    """Raises where what is inside hangs; hypothesis only times what has ended."""

    def give_up(*_):
        raise TimeoutError(f"no end after {seconds} s")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@st.composite
def mutations(draw):
    """A function from a file's bytes to others."""

    def place(size):
        return draw(st.integers(0, max(0, size - 1)))

    kind = draw(
        st.sampled_from(["flip", "cut", "drop", "add", "swap", "twice", "zero"])
    )
    times = draw(st.integers(1, 3))

    def mutate(data):
        for _ in range(times):
            data = once(bytearray(data))
        return bytes(data)

    def once(data):
        at, end = sorted((place(len(data)), place(len(data))))
        if kind == "flip" and data:
            data[at] ^= 1 << draw(st.integers(0, 7))
        elif kind == "cut":
            del data[at:]
        elif kind == "drop":
            del data[at:end]
        elif kind == "add":
            data[at:at] = draw(st.binary(max_size=40))
        elif kind == "swap":
            data[at:end] = data[at:end][::-1]
        elif kind == "twice":
            data[end:end] = data[at:end]
        elif kind == "zero":
            data[at:end] = bytes(end - at)
        return data

    return mutate


@settings(max_examples=150, deadline=5000)
@given(
    count=st.integers(1, 40),
    compression=st.sampled_from(["none", "gzip", "members"]),
    mutate=mutations(),
)
def test_no_mutation_loses_records_silently(count, compression, mutate):
    wanted = examples(count)
    whole = shard(wanted, compression)
    damaged = mutate(whole)
    with tempfile.TemporaryDirectory() as folder:
        room = Room(folder)
        path = room.put(NAME, damaged)
        manifest = {
            "name": NAME,
            "split": "train",
            "records": count,
            "size_bytes": len(whole),
            "sha256": sha256(whole).hexdigest(),
        }
        room.put("manifest.json", json.dumps({"shards": [manifest]}).encode())

        with ends_within(30):
            report = room.ingest(path)

        found = room.records()
        assert report.records == len(found) == report.splits["train"]
        assert set(found) <= set(wanted)
        assert sum(report.errors.values()) == report.quarantined
        assert 0 <= report.corrupt_fraction <= 1
        assert (report.corrupt_fraction > 0) == (report.quarantined > 0)
        assert len(room.quarantine()) == report.quarantined
        if damaged == whole:
            assert (report.quarantined, report.problems) == (0, ())
        else:
            assert [problem.kind for problem in report.problems] == ["manifest"]
        # Whatever else the manifest says: what has no error has been ingested.
        if not report.quarantined:
            is_gzip = damaged[:2] == b"\x1f\x8b"
            content = gzip.decompress(damaged) if is_gzip else damaged
            assert framed(found) == content


@settings(max_examples=100, deadline=5000)
@given(
    count=st.integers(1, 40),
    compression=st.sampled_from(["none", "gzip", "members"]),
    place=st.integers(0),
    bit=st.integers(0, 7),
)
def test_a_flipped_bit_is_found_without_a_manifest(count, compression, place, bit):
    wanted = examples(count)
    damaged = bytearray(shard(wanted, compression))
    damaged[place % len(damaged)] ^= 1 << bit
    with tempfile.TemporaryDirectory() as folder:
        room = Room(folder)

        with ends_within(30):
            report = room.ingest(room.put(NAME, bytes(damaged)))

        # gzip's header has fields, such as a time, whose change changes no record.
        assert report.quarantined or room.records() == wanted
