"""Ingestion as a step of a Beam pipeline: the same files as in forked processes."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apache_beam
import pytest

from components.tfrecord_gen import ingest as ingest_module
from components.tfrecord_gen import quarantine as quarantine_module
from components.tfrecord_gen.scan import scan_batches
from components.tfrecord_gen.settings import HashSplits, Ingestion
from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS
from sluice.errors import UsageError
from sluice.tfrecords.frame_reader import Batch
from sluice.tfrecords.input_stream import InputStream
from tests.kit.ingestion import DAMAGES, examples, framed, shard

pytestmark = pytest.mark.tf
HASHED = {"hash_splits": HashSplits(train=2, eval=1, test=1)}


# As in a worker of an engine, several threads of a process ingest files.
THREADS = ("--direct_num_workers=4", "--direct_running_mode=multi_threading")


def _pipeline():
    return apache_beam.Pipeline(argv=[*LOCAL_BEAM_ARGS, *THREADS])


@pytest.mark.parametrize("hashed", [False, True])
def test_the_output_is_the_same(room, hashed, monkeypatch):
    monkeypatch.setattr(ingest_module, "_SHARD_FROM_BYTES", 1)
    monkeypatch.setattr(quarantine_module, "MAX_BYTES", 1200)
    paths = [
        room.put(f"{n}", shard(examples(300, 300 * n), ("gzip", "none")[n % 2]))
        for n in range(12)
    ]
    paths += [room.put(f"d-{x}", y.content) for x, y in DAMAGES.items()]
    paths += [room.put(f"bad-{n}", framed([b"\xff" * n])) for n in (500, 450, 20)]
    options = {"splits": ("train", "eval", "test"), **(HASHED if hashed else {})}
    outputs = []
    for make_pipeline in (None, _pipeline):
        report = room.ingest(*paths, make_pipeline=make_pipeline, **options)
        files = [path for path in Path(room.out).rglob("*") if path.is_file()]
        outputs.append((report, {path: path.read_bytes() for path in files}))
    assert outputs[0] == outputs[1]
    assert report.records > 3_000 and report.quarantine_cut
    # Only what the next nodes read is left.
    aside = sorted(os.listdir(f"{room.out}/quarantine"))
    assert aside == ["quarantine.tfrecord.gz", "report.json"]


def test_an_error_is_the_same(room):
    path = room.put("a", shard(examples(3)))
    gone = f"{room.base}/in/gone"
    said = []
    for make_pipeline in (None, _pipeline):
        with pytest.raises(UsageError) as raised:
            room.ingest(path, gone, make_pipeline=make_pipeline)
        said.append(str(raised.value))
    assert said[0] == said[1] and gone in said[0]


def test_threads_do_not_share_what_is_not_safe(room):
    """Else, TFX's decoder ends the process: "double free or corruption"."""
    path = room.put("a", shard(examples(300) * 30))
    types = {"id": "int64_list", "text": "bytes_list"}
    settings = Ingestion(base=room.base, patterns={"": "*"}, types=types)

    def count(_: int) -> int:
        with InputStream(path) as stream:
            batches = [*scan_batches(stream, settings)]
            return sum(len(x.records) for x in batches if isinstance(x, Batch))

    with ThreadPoolExecutor(4) as pool:
        assert {*pool.map(count, range(16))} == {9_000}
