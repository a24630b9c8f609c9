"""Benchmark: ingestion of Parquet, CSV and TFRecords with the same rows.

``python benchmarks/tables.py [--rows 1000000]``

The rows are taxi's, as often as needed, in files of 100,000. One process ingests each
format into empty folders, checks and quarantine included; *where* and *expect* are
Parquet with a filter, and with a condition of the data gate. *Peak* is the resident
memory of the process, above that before the ingestion.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PER_FILE = 100_000
RULES = {
    "where": {"where": "trip_miles >= 0 or trip_miles is null"},
    "expect": {"expect": ("fare >= 0 or tips >= 0",)},
}


def write(folder: Path, rows: int) -> None:
    """Writes the rows in each format, below folders of their names."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    wheel = importlib.metadata.distribution("tfx")
    source = "tfx/examples/chicago_taxi_pipeline/data/simple/data.csv"
    table = arrow_csv.read_csv(str(wheel.locate_file(source)))
    repeated = pa.concat_tables([table] * (PER_FILE // len(table) + 1))
    chunk = repeated.slice(0, PER_FILE).combine_chunks()
    for index in range(max(1, rows // PER_FILE)):
        for name in ("parquet", "csv"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        parquet.write_table(chunk, folder / "parquet" / f"{index}.parquet")
        arrow_csv.write_csv(chunk, folder / "csv" / f"{index}.csv")


def measure(files: list[str], out: str, settings: dict[str, Any]) -> None:
    """Prints the seconds and the peak of an ingestion in this process."""
    import resource

    import duckdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401

    from components.tfrecord_gen.ingest import ingest
    from components.tfrecord_gen.input_files import SourceFile, Window
    from components.tfrecord_gen.scan import _decoder
    from components.tfrecord_gen.settings import Ingestion
    from sluice.table_files import column_types

    patterns = {"train": "*"}
    sources = [SourceFile(x, "train", size_bytes=Path(x).stat().st_size) for x in files]
    types = column_types([x for x in files if not x.endswith(".gz")])
    asked = Ingestion(base="", patterns=patterns, types=types, **settings)
    _decoder(0, *types.items())
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = time.perf_counter()
    window = Window("", patterns, tuple(sources))
    report = ingest(asked, window, {"train": f"{out}/train"}, f"{out}/aside", 1)
    seconds = time.perf_counter() - begin
    peak_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    found = {"rows": report.records, "seconds": seconds, "peak_mb": peak_kb / 1024}
    print(json.dumps(found))


def main() -> None:
    """Writes the data, and measures each format in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--measure", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        out, settings, *files = options.measure
        measure(files, out, json.loads(settings))
        return
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.rows)
        sides = {"parquet": {}, "csv": {}, "tfrecord": {}, **RULES}
        for name, settings in sides.items():
            source = name if name in ("csv", "tfrecord") else "parquet"
            files = sorted(map(str, (Path(folder) / source).iterdir()))
            out = f"{folder}/out"
            command = [sys.executable, __file__, "--measure", out, json.dumps(settings)]
            done = subprocess.run(
                [*command, *files], stdout=subprocess.PIPE, check=True
            )
            found = json.loads(done.stdout)
            rate = found["rows"] / found["seconds"]
            print(f"{name:9} {rate:9,.0f} rows/s  peak +{found['peak_mb']:,.0f} MB")
            if name == "parquet":
                shutil.move(f"{out}/train", f"{folder}/tfrecord")
            shutil.rmtree(out)


if __name__ == "__main__":
    main()
