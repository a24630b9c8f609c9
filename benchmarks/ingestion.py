"""Benchmark: time and memory of ingestion, compared with TFX's ImportExampleGen.

``python benchmarks/ingestion.py [--sizes fashion,jpeg] [--scale 1] [--growth 10]``

Two data sets of gzip-compressed shards: *fashion* is 60,000 records of 550 bytes that
compress as Fashion-MNIST's do; *jpeg* is 20,000 records of 25 kB that do not compress.
Each run is a new process, which imports TFX and our ingestion before the clock starts:

* *ours*: ``ingest`` on two workers, every record checked and every file digested.
* *gs*: the same, from the emulator of ``gs://`` instead of local files.
* *stock*: the executor of TFX's ImportExampleGen with Beam's in-process runner, as TFX
  runs it.
* *stock x2*: the same on two of Beam's worker processes.

Memory is measured in a second run, since measuring slows it: the peak of the
proportional set size (PSS) of the process and its descendants, minus that after the
imports. ``--growth N`` also ingests N times the data, with ours only, and prints how
much more memory that takes.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from runners.cloud.cloud_locations import Upload  # noqa: E402
from runners.cloud.job_inputs import upload  # noqa: E402
from sample_data.tf_example import encode  # noqa: E402
from sluice.tfrecords.frame_encoding import frame  # noqa: E402
from tests.kit.gcs.gcs_emulator import GcsEmulator  # noqa: E402

SHARDS = 8
BUCKET = "benchmark"
RUNS = ("ours", "gs", "stock", "stock x2")


@dataclass(frozen=True)
class Size:
    """A kind of data set: how many records, of how many bytes, and how random."""

    records: int
    record_bytes: int
    noise: float


# Half of the bytes random: gzip leaves half, as of Fashion-MNIST's pixels.
SIZES = {"fashion": Size(60_000, 550, 0.5), "jpeg": Size(20_000, 25_000, 1.0)}


def make(folder: Path, size: Size, scale: float) -> int:
    """Writes the shards of a data set; returns the bytes of their records."""
    folder.mkdir()
    each = int(size.records * scale / SHARDS)
    total = 0
    for shard in range(SHARDS):
        packer = zlib.compressobj(6, zlib.DEFLATED, 31)
        with open(folder / f"train-{shard:05d}-of-{SHARDS:05d}.gz", "wb") as file:
            for record in _records(size, each, shard):
                total += len(record)
                file.write(packer.compress(frame(record)))
            file.write(packer.flush())
    return total


def _records(size: Size, count: int, seed: int) -> Iterator[bytes]:
    source = random.Random(seed)
    pixels = size.record_bytes - 38
    random_bytes = int(pixels * size.noise)
    for index in range(count):
        data = source.randbytes(random_bytes) + bytes(pixels - random_bytes)
        yield encode({"image": [data], "label": [index % 10]})


def measure(which: str, data: Path | str, out: Path) -> tuple[float, float]:
    """Returns the seconds of one run, and the peak of memory of another, in MB."""
    seconds = _run(which, data, out, "time")["seconds"]
    shutil.rmtree(out)
    return seconds, _run(which, data, out, "memory")["peak_mb"]


def _run(which: str, data: Path | str, out: Path, what: str) -> dict[str, float]:
    command = [sys.executable, __file__, "--child", which, str(data), str(out), what]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{which} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def child(which: str, data: str, out: str, what: str) -> None:
    """Runs one ingestion in this process and prints what it cost."""
    from sluice.compat import prepare_environment

    prepare_environment()
    from tfx.components.example_gen.import_example_gen import executor  # noqa: F401

    # The process of a node has imported both before it starts.
    import components.tfrecord_gen.ingest  # noqa: F401

    watcher = None
    if what == "memory":
        command = [sys.executable, __file__, "--watch", str(os.getpid())]
        pipe = subprocess.PIPE
        watcher = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        assert watcher.stdout is not None and watcher.stdout.readline() == "ready\n"
    start = time.perf_counter()
    if which in ("ours", "gs"):
        _ours(data, out)
    else:
        _stock(data, out, processes=which == "stock x2")
    answer = {"seconds": time.perf_counter() - start}
    if watcher is not None:
        answer["peak_mb"] = float(watcher.communicate("done\n")[0])
    print(json.dumps(answer))


def watch(process: int) -> None:
    """Samples the memory of a process and its descendants until it reads a line.

    A separate program: a fork would share some of the memory and change the PSS.
    """
    base = peak = _tree_mb(process)
    print("ready", flush=True)
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        peak = max(peak, _tree_mb(process))
    print(f"{peak - base:.1f}")


def _tree_mb(root: int) -> float:
    total = 0
    process = psutil.Process(root)
    for member in [process, *process.children(recursive=True)]:
        if member.pid == os.getpid():
            continue
        # psutil reads every mapping, of which TensorFlow has thousands.
        with contextlib.suppress(OSError):
            rollup = Path(f"/proc/{member.pid}/smaps_rollup").read_text()
            total += int(rollup.split("Pss:")[1].split()[0])
    return total / 1e3


def _ours(data: str, out: str) -> None:
    from components.tfrecord_gen.ingest import ingest
    from components.tfrecord_gen.input_files import SourceFile, Window
    from components.tfrecord_gen.settings import Ingestion
    from sluice.storage.storage import storage_for

    entries = storage_for(data).list(data)
    files = tuple(
        SourceFile(entry.uri, "train", size_bytes=entry.size_bytes) for entry in entries
    )
    settings = Ingestion(base=data, patterns={"train": "*"})
    window = Window(data, settings.patterns, files)
    out_dirs = {"train": f"{out}/Split-train"}
    report = ingest(settings, window, out_dirs, f"{out}/quarantine", 2)
    assert not report.quarantined and not report.problems


def _stock(data: str, out: str, *, processes: bool) -> None:
    from google.protobuf import json_format
    from tfx.components.example_gen.import_example_gen import executor
    from tfx.dsl.components.base import base_beam_executor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts

    from pipeline.graph.arguments import LOCAL_BEAM_ARGS

    beam_args = list(LOCAL_BEAM_ARGS)
    if processes:
        beam_args += [
            "--direct_running_mode=multi_processing",
            "--direct_num_workers=2",
        ]
    examples = standard_artifacts.Examples()
    examples.uri = out
    split = example_gen_pb2.Input.Split(name="train", pattern="*")
    context = base_beam_executor.BaseBeamExecutor.Context(
        beam_pipeline_args=beam_args, tmp_dir=f"{out}/tmp", unique_id="1"
    )
    executor.Executor(context).Do(
        {},
        {"examples": [examples]},
        {
            "input_base": data,
            "input_config": json_format.MessageToJson(
                example_gen_pb2.Input(splits=[split])
            ),
            "output_config": "{}",
            "output_data_format": example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE,
        },
    )


def main() -> None:
    """Measures every run of every size and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="fashion,jpeg")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--growth", type=int, default=10)
    parser.add_argument("--runs", default=",".join(RUNS))
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--watch", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.watch:
        watch(arguments.watch)
        return
    if arguments.child:
        child(*arguments.child)
        return
    with (
        tempfile.TemporaryDirectory(prefix="sluice-ingestion-bench-") as folder,
        GcsEmulator(Path(folder, "emulator"), [BUCKET]) as emulator,
    ):
        os.environ.update(emulator.environment())
        for name in arguments.sizes.split(","):
            _compare(Path(folder), name, arguments)


def _compare(folder: Path, name: str, arguments: argparse.Namespace) -> None:
    data = folder / name
    total = make(data, SIZES[name], arguments.scale)
    packed = sum(path.stat().st_size for path in data.iterdir())
    print(
        f"{name}: {total / 1e6:,.0f} MB of records, {packed / 1e6:,.0f} MB compressed"
    )
    ours_s = ours_mb = 0.0
    for index, which in enumerate(arguments.runs.split(",")):
        source: Path | str = data
        if which == "gs":
            source = f"gs://{BUCKET}/{name}"
            upload(Upload(data, source))
        seconds, peak = measure(which, source, folder / f"{name}-{index}")
        if which == "ours":
            ours_s, ours_mb = seconds, peak
        ratio = f"{seconds / ours_s:6.1f} x ours" if ours_s else ""
        rate = packed / 1e6 / seconds
        print(
            f"  {which:<9} {seconds:7.2f} s {rate:7.0f} MB/s compressed "
            f"{peak:7.0f} MB peak {ratio}",
            flush=True,
        )
    if arguments.growth > 1 and ours_s:
        grown = folder / f"{name}-grown"
        make(grown, SIZES[name], arguments.scale * arguments.growth)
        seconds, peak = measure("ours", grown, folder / f"{name}-grown-out")
        print(
            f"  ours, {arguments.growth} times the data: {seconds:.2f} s, "
            f"{peak:.0f} MB peak, {peak / ours_mb:.2f} times",
            flush=True,
        )


if __name__ == "__main__":
    main()
