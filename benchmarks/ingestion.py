"""Benchmark: time and memory of ingestion, compared with TFX's ImportExampleGen.

``python benchmarks/ingestion.py [--scale 1] [--repeat 1]``

Two data sets of gzip-compressed shards: *fashion* is 60,000 records of 550 bytes that
compress as Fashion-MNIST's do; *jpeg* is 20,000 records of 25 kB that do not compress.
``--scale`` multiplies the number of records. The sides alternate, each run in a process
of its own, which imports TFX and our ingestion before the clock starts:

* *ours*: ``ingest`` on two workers, every record checked and every file digested.
* *stock*: the executor of TFX's ImportExampleGen with Beam's in-process runner, as TFX
  runs it.

Memory is what the largest process of a run takes more than after the imports.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sample_data.tf_example import encode  # noqa: E402
from sluice.tfrecords.frame_encoding import frame  # noqa: E402

SHARDS = 8
# Number of records, bytes of each, and how many of the bytes are random. Gzip leaves
# half of Fashion-MNIST's pixels.
DATA_SETS = {"fashion": (60_000, 512, 256), "jpeg": (20_000, 25_000, 25_000)}


def write(folder: Path, records: int, record_bytes: int, random_bytes: int) -> None:
    """Writes the shards of a data set."""
    folder.mkdir()
    source = random.Random(0)
    for shard in range(SHARDS):
        name = f"train-{shard:05d}-of-{SHARDS:05d}.gz"
        with gzip.open(folder / name, "wb", compresslevel=6) as file:
            for index in range(records // SHARDS):
                data = source.randbytes(random_bytes).ljust(record_bytes, b"\0")
                record = encode({"image": [data], "label": [index % 10]})
                file.write(frame(record))


def measure(side: str, data: Path) -> tuple[float, float]:
    """Returns the seconds and the megabytes of one run, in a process of its own."""
    with tempfile.TemporaryDirectory(dir=data.parent) as out:
        done = subprocess.run(
            [sys.executable, __file__, "--side", side, str(data), out],
            env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"},
            capture_output=True,
            text=True,
        )
    if done.returncode:
        sys.exit(f"{side} failed:\n{done.stderr[-4000:]}")
    seconds, megabytes = json.loads(done.stdout.splitlines()[-1])
    return seconds, megabytes


def run_here(side: str, data: str, out: str) -> None:
    """Runs one ingestion in this process, and prints seconds and megabytes."""
    from sluice.compat import prepare_environment

    prepare_environment()
    from tfx.components.example_gen.import_example_gen import executor  # noqa: F401

    # The process of a node has imported both before it starts.
    import components.tfrecord_gen.ingest  # noqa: F401

    before_kb, start = getrusage(RUSAGE_SELF).ru_maxrss, time.perf_counter()
    {"ours": _ours, "stock": _stock}[side](data, out)
    seconds = time.perf_counter() - start
    after_kb = max(getrusage(who).ru_maxrss for who in (RUSAGE_SELF, RUSAGE_CHILDREN))
    print(json.dumps([seconds, (after_kb - before_kb) / 1000]))


def _ours(data: str, out: str) -> None:
    from components.tfrecord_gen.ingest import ingest
    from components.tfrecord_gen.select_spans import select_spans
    from components.tfrecord_gen.settings import Ingestion

    settings = Ingestion(base=data, patterns={"train": "*"})
    window = select_spans(settings, time.time())
    splits = {"train": f"{out}/Split-train"}
    report = ingest(settings, window, splits, f"{out}/quarantine", 2)
    assert not report.quarantined and not report.problems


def _stock(data: str, out: str) -> None:
    from google.protobuf import json_format
    from tfx.components.example_gen.import_example_gen import executor
    from tfx.dsl.components.base import base_beam_executor
    from tfx.proto import example_gen_pb2
    from tfx.types import standard_artifacts

    from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS

    examples = standard_artifacts.Examples()
    examples.uri = out
    split = example_gen_pb2.Input.Split(name="train", pattern="*")
    splits = json_format.MessageToJson(example_gen_pb2.Input(splits=[split]))
    context = base_beam_executor.BaseBeamExecutor.Context(
        beam_pipeline_args=list(LOCAL_BEAM_ARGS), tmp_dir=f"{out}/tmp", unique_id="1"
    )
    properties = {
        "input_base": data,
        "input_config": splits,
        "output_config": "{}",
        "output_data_format": example_gen_pb2.PayloadFormat.FORMAT_TF_EXAMPLE,
    }
    executor.Executor(context).Do({}, {"examples": [examples]}, properties)


def main() -> None:
    """Measures both sides of each data set in turns, and prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--side", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        run_here(*arguments.side)
        return
    for name, (records, record_bytes, random_bytes) in DATA_SETS.items():
        with tempfile.TemporaryDirectory(prefix="sluice-ingestion-") as folder:
            data, number = Path(folder, name), int(records * arguments.scale)
            write(data, number, record_bytes, random_bytes)
            times: dict[str, list[float]] = {"ours": [], "stock": []}
            for _ in range(arguments.repeat):
                for side, seconds in times.items():
                    took, megabytes = measure(side, data)
                    seconds.append(took)
                    print(f"{name:<8} {side:<6} {took:7.2f} s {megabytes:7.0f} MB")
        ours, stock = map(statistics.median, times.values())
        print(f"{name:<8} stock / ours {stock / ours:.1f}", flush=True)


if __name__ == "__main__":
    main()
