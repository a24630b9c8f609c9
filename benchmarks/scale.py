"""Benchmark: time and memory of a run by the number of rows, 10,000 to 10 million.

``python benchmarks/scale.py FOLDER [--rows 10000,300000,...] [--workers auto,1]``

The rows are the taxi trips, shuffled and repeated; 70 % train, 15 % eval, 15 % test.
Each size is a run from ingestion to push in a workspace of its own, with one epoch. The
data and results are kept in FOLDER, so that an interrupted benchmark goes on. Memory
is sampled twice a second: resident bytes of the largest process, and proportional bytes
(PSS) of all together, which count shared pages once.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from overhead import SLUICE, make_project  # noqa: E402
from svg import COLORS, picture, text  # noqa: E402

SHARES = {"train": 0.7, "eval": 0.15, "test": 0.15}
ROWS_PER_FILE = 100_000
SETTINGS = (
    "model=dense",
    "model_params={hidden_units: [128, 64], dropout: 0.1}",
    "train.early_stopping=null",
    "train.epochs=1",
    "train.input.cache=none",
    "evaluate.thresholds=[{metric: auc, lower_bound: 0.5}]",
)
STEPS = ("TFRecordGen", "StatisticsGen", "Transform", "Trainer", "Evaluator")


def make_data(folder: Path, rows: int) -> None:
    """Writes the files of all splits, unless they are there."""
    if folder.exists():
        return
    from sample_data import catalog
    from sample_data.data_set import ALL
    from sluice.tfrecords.frame_encoding import frame

    records = catalog.get("taxi").read(None)[ALL]
    frames = [frame(records.make(at)) for at in range(records.count)]
    random.Random(17).shuffle(frames)
    made = folder.with_suffix(".part")
    made.mkdir(parents=True, exist_ok=True)
    at = 0
    for split, share in SHARES.items():
        left = round(rows * share)
        files = -(-left // ROWS_PER_FILE)
        for number in range(files):
            count = min(left, ROWS_PER_FILE)
            places = range(at, at + count)
            data = b"".join(frames[place % len(frames)] for place in places)
            name = f"{split}-{number:05d}-of-{files:05d}.tfrecord.gz"
            (made / name).write_bytes(gzip.compress(data, 1))
            at, left = at + count, left - count
    made.rename(folder)


def measure(project: Path, data: Path, workspace: Path, workers: str) -> dict[str, Any]:
    """Runs the pipeline; returns seconds by step, and memory in bytes."""
    settings = (f"data.dir={data}", f"beam.workers={workers}", *SETTINGS)
    words = [word for setting in settings for word in ("--set", setting)]
    variables = {"PYTHONPATH": str(ROOT), "SLUICE_WORKSPACE": str(workspace)}
    log = workspace.with_suffix(".log")
    largest: dict[str, int] = {}
    together = 0
    start = time.perf_counter()
    with log.open("wb") as out:
        process = psutil.Popen(
            [*SLUICE, "run", "taxi", *words],
            cwd=project,
            env={**os.environ, **variables},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
        while process.poll() is None:
            sample = use_of_tree(process)
            together = max(together, sum(pss for _, _, pss in sample))
            for name, rss, _ in sample:
                largest[name] = max(largest.get(name, 0), rss)
            with suppress(psutil.TimeoutExpired):
                process.wait(0.5)
    if process.returncode:
        sys.exit(f"failed:\n{log.read_text()[-4000:]}")
    took = time.perf_counter() - start
    (file,) = workspace.glob("taxi/runs/*/run.json")
    record = json.loads(file.read_text())
    return {
        "wall_s": took,
        "nodes": {x["id"]: x["duration_s"] for x in record["nodes"]},
        "largest_bytes": largest,
        "together_bytes": together,
    }


def use_of_tree(process: psutil.Process) -> list[tuple[str, int, int]]:
    """Returns name, resident and proportional bytes of each process."""
    found = []
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            memory = each.memory_full_info()
            found.append((each.name(), memory.rss, memory.pss))
    return found


def main() -> None:
    """Measures what has not been measured, prints a table and draws a picture."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--rows", default="10000,100000,300000,1000000,3000000,10000000"
    )
    parser.add_argument("--workers", default="auto")
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    folder: Path = arguments.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    project, results = folder / "project", folder / "results.json"
    if not project.exists():
        make_project(project, [])
    found: dict[str, Any] = json.loads(results.read_text()) if results.exists() else {}
    for rows in map(int, arguments.rows.split(",")):
        make_data(folder / f"rows-{rows}", rows)
        for workers in arguments.workers.split(","):
            key = f"{rows} {workers}"
            if key in found:
                continue
            number = len([*folder.glob("workspace-*.log")])
            place = folder / f"workspace-{number}"
            found[key] = measure(project, folder / f"rows-{rows}", place, workers)
            results.write_text(json.dumps(found, indent=1))
            show(key, found[key])
    for key, item in found.items():
        show(key, item)
    if arguments.picture:
        arguments.picture.write_text(draw(found))


def show(key: str, found: dict[str, Any]) -> None:
    """Prints a size: seconds of the steps, microseconds a row, and memory."""
    rows, workers = key.split()
    steps = " ".join(f"{name} {found['nodes'][name]:.1f}" for name in STEPS)
    largest = max(found["largest_bytes"], key=found["largest_bytes"].get)
    print(
        f"{int(rows):>11,} rows, workers {workers}: {found['wall_s']:.1f} s "
        f"({found['wall_s'] / int(rows) * 1e6:.0f} µs a row): {steps}; "
        f"{largest} {found['largest_bytes'][largest] / 1e6:,.0f} MB, "
        f"all {found['together_bytes'] / 1e6:,.0f} MB",
        flush=True,
    )


def draw(found: dict[str, Any]) -> str:
    """Returns a picture: microseconds a row by step, and memory, by rows."""
    sizes = [(key, item) for key, item in found.items() if key.endswith("auto")]
    most = max(x["wall_s"] / int(key.split()[0]) for key, x in sizes[1:] or sizes)
    width, height, left = 70, 200, 60
    parts = []
    for at, (key, item) in enumerate(sizes):
        rows = int(key.split()[0])
        x, y = left + at * width, 20.0 + height
        for step, color in zip(STEPS, (*COLORS, "#cc79a7"), strict=True):
            tall = height * min(1, item["nodes"][step] / rows / most)
            y -= tall
            parts.append(
                f'<rect x="{x}" y="{y:.1f}" width="{width - 20}" height="{tall:.1f}" '
                f'fill="{color}"/>'
            )
        middle = x + (width - 20) / 2
        us, gb = item["wall_s"] / rows * 1e6, item["together_bytes"] / 1e9
        parts += [
            text(middle, height + 36, f"{rows:,}", "middle"),
            text(middle, height + 52, f"{us:.0f} µs", "middle"),
            text(middle, height + 68, f"{gb:.1f} GB", "middle"),
        ]
    for at, (step, color) in enumerate(zip(STEPS, (*COLORS, "#cc79a7"), strict=True)):
        x, y = left + len(sizes) * width, 40 + 18 * at
        parts.append(
            f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{color}"/>'
        )
        parts.append(text(x + 18, y, step))
    for line, name in enumerate(("rows", "a row", "memory")):
        parts.append(text(left - 8, height + 36 + 16 * line, name, "end"))
    return picture(left + len(sizes) * width + 130, height + 80, parts)


if __name__ == "__main__":
    main()
