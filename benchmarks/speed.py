"""Benchmark: a run of Sluice beside stock TFX and a plain Keras script, same work.

``python benchmarks/speed.py [--data fashion,digits] [--repeat 3] [--scale 1]``

Four sides in turn, or those of ``--sides``, each as a user starts it, from its first
process to its last:

* *ours*: ``sluice run`` with all gates, in an empty workspace;
* *stock*: the same components as TFX's examples write them, with LocalDagRunner;
* *rule*: stock with AutoGraph kept off tf_keras, as ``sluice.patches`` does;
* *bare*: tf.data and Keras on the same records, without checks, with that rule too;
* *flink* and *cluster*, if asked for: ours, with the data steps on the Flink inside the
  job server of this machine, or on its job manager; ``sluice beam-workers`` runs.

Data, features, model (a perceptron), batch size, epochs, learning rate, metrics, slices
and thresholds are those of one config for all sides. Stock evaluates only the config's
metrics; ours adds what its report draws. *CPU* and *peak*, the largest sum of resident
memory, are sampled over a side's processes every 0.2 s; pages that forked processes
share count once for each. *Kept* is the size of what a side leaves below its folder.
``--json`` stores all figures, ``--picture`` draws the times as SVG. ``--scale 0.05`` is
for trying it out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import product
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.overhead import SLUICE, make_project  # noqa: E402
from benchmarks.svg import COLORS, picture, text  # noqa: E402
from pipeline.checks.before_run import check_before_run  # noqa: E402
from pipeline.config.load import load_config  # noqa: E402
from sample_data import catalog  # noqa: E402
from sample_data.data_set import ALL, Records, Split  # noqa: E402
from sample_data.tf_example import encode  # noqa: E402
from schemas.loader import load  # noqa: E402
from sluice.compat import prepare_environment  # noqa: E402

FASHION = Path("/usr/share/datasets/fashion-mnist")
SIDES = ("ours", "stock", "rule", "bare")
ENGINES = {
    "flink": "beam={engine: flink, workers: 2}",
    "cluster": "beam={engine: flink, workers: 2, master: '127.0.0.1:8081'}",
}
TITLES = {
    "ours": "Sluice",
    "stock": "stock TFX",
    "rule": "stock, AutoGraph off",
    "bare": "Keras alone",
}
# What is measured of a data set: by side the figures of each turn.
Results = dict[str, list[dict[str, Any]]]


def jpeg(index: int) -> bytes:
    """Returns a record with smooth noise, 192 x 192, whose color tells its class."""
    import io

    from PIL import Image

    source, label, file = random.Random(index), index % 10, io.BytesIO()
    noise = bytearray(source.randbytes(24 * 24 * 3))
    for channel in range(3):
        shift = 60 * (label // 3**channel % 3)
        noise[channel::3] = bytes(x // 2 + shift for x in noise[channel::3])
    image = Image.frombytes("RGB", (24, 24), bytes(noise))
    image.resize((192, 192), Image.Resampling.BICUBIC).save(file, "JPEG", quality=90)
    return encode({"image": [file.getvalue()], "label": [label]})


@dataclass(frozen=True)
class Case:
    """A data set.

    Attributes:
      config: its config, and the name of the sample data.
      part: of the sample data; ``jpeg`` for JPEGs.
      splits: sizes of train, eval and test.
      settings: what is set in the config.
    """

    config: str
    part: str
    splits: tuple[int, int, int]
    settings: tuple[str, ...]


FIXED = (
    "model=dense",
    "model_params={hidden_units: [128, 64], dropout: 0.1}",
    *("train.learning_rate=0.001", "train.early_stopping=null"),
)
ACCURACY = "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.05}]"
AUC = "evaluate.thresholds=[{metric: auc, lower_bound: 0.5}]"
IMAGES = (*FIXED, ACCURACY, "train.epochs=1", "train.batch_size=64")
BIG = (
    "features.image={kind: image, height: 64, width: 64, channels: 3}",
    "examples.images.max_side=192",
)
CASES = {
    "fashion": Case("fashion-mnist", "train", (40_000, 10_000, 10_000), IMAGES),
    "taxi": Case(
        "taxi", ALL, (210_000, 45_000, 45_000), (*FIXED, AUC, "train.epochs=1")
    ),
    "jpeg": Case("fashion-mnist", "jpeg", (8_000, 1_000, 1_000), (*IMAGES, *BIG)),
    "digits": Case(
        "digits", ALL, (1_200, 297, 300), (*FIXED, ACCURACY, "train.epochs=8")
    ),
}


def prepare(case: Case, project: Path, data: Path, scale: float) -> dict[str, Any]:
    """Writes the records, repeated as needed; returns what the other sides are given.

    That is our config, with the steps of an epoch, and what they need of the schema.
    """
    source, records = catalog.get(case.config), Records(10_000, jpeg)
    if case.part != "jpeg":
        records = source.read(FASHION)[case.part]
    splits = tuple(
        Split(name, max(200, int(count * scale)), max(1, count // 5_000))
        for name, count in zip(("train", "eval", "test"), case.splits, strict=True)
    )
    total, made = sum(split.records for split in splits), records.make
    repeated = Records(total, lambda at: made(at % records.count))
    data.mkdir(parents=True)
    catalog.write_shards(replace(source, splits=splits), {ALL: repeated}, data, seed=17)
    file = project / "configs" / f"{case.config}.yaml"
    settings = [f"data.dir={data}", *case.settings]
    config = check_before_run(load_config(str(file), overrides=settings))
    label, batch = config.label.feature, config.train.batch_size or 128
    types = {
        item.name: {1: "string", 2: "int64", 3: "float32"}[item.type]
        for item in load(config.schema_path).feature
        if item.name in config.feature_set.features or item.name == label
    }
    return {
        **config.model_dump(mode="json", by_alias=True, warnings=False),
        "schema": str(config.schema_path),
        "classes": len(config.feature_set.label.class_names),
        "dtypes": types,
        "steps": {split.name: -(-split.records // batch) for split in splits},
    }


def command(side: str, case: Case, config: Path, folder: Path) -> list[str]:
    """Returns the command of a side."""
    if side in ("ours", *ENGINES):
        engine = [ENGINES[side]] if side in ENGINES else []
        own = [f"data.dir={config.with_suffix('')}", *engine]
        settings = [word for x in (*own, *case.settings) for word in ("--set", x)]
        return [*SLUICE, "run", case.config, *settings]
    script = Path(__file__).with_name(f"speed_{side.replace('rule', 'stock')}.py")
    rule = ["rule"] if side == "rule" else []
    return [sys.executable, str(script), str(config), str(folder), *rule]


def measure(command: list[str], project: Path, folder: Path) -> dict[str, Any]:
    """Runs a side; its failure ends the benchmark."""
    folder.mkdir(parents=True)
    variables = {"PYTHONPATH": str(ROOT), "SLUICE_WORKSPACE": str(folder)}
    environment = {**os.environ, **variables}
    log, began, start = folder.with_suffix(".log"), time.time(), time.perf_counter()
    peak_bytes, cpu_s = 0, 0.0
    with open(log, "wb") as out:
        process = psutil.Popen(
            command, cwd=project, env=environment, stdout=out, stderr=out
        )
        while True:
            try:
                code = process.wait(0.2)
                break
            except psutil.TimeoutExpired:
                memory, cpu = use_of_tree(process)
                peak_bytes, cpu_s = max(peak_bytes, memory), max(cpu_s, cpu)
    took = time.perf_counter() - start
    if code:
        sys.exit(f"{command} failed:\n{log.read_text()[-4000:]}")
    kept = sum(x.lstat().st_size for x in folder.rglob("*") if x.is_file())
    found: dict[str, Any] = {
        "wall s": took,
        "CPU s": cpu_s,
        "peak MB": peak_bytes / 1e6,
        "kept MB": kept / 1e6,
        "metrics": evaluation(folder),
    }
    for file in folder.glob("*/runs/*/run.json"):
        record = json.loads(file.read_text())
        ran = [node for node in record["nodes"] if node["started_at"]]
        first = min(datetime.fromisoformat(node["started_at"]) for node in ran)
        nodes = {node["id"]: node["duration_s"] for node in ran}
        found["nodes"] = {"(before the first)": first.timestamp() - began, **nodes}
    return found


def use_of_tree(process: psutil.Process) -> tuple[int, float]:
    """Returns resident bytes, and CPU seconds with those of processes that ended.

    Not ``RUSAGE_CHILDREN``: nobody waits for the server that forks our nodes.
    """
    memory, cpu_s = 0, 0.0
    for each in (process, *process.children(recursive=True)):
        with suppress(psutil.Error):
            memory += each.memory_info().rss
            cpu_s += sum(each.cpu_times()[:4])
    return memory, cpu_s


def evaluation(folder: Path) -> dict[str, float]:
    """Returns the metrics of the test split."""
    if (folder / "metrics.json").exists():
        return json.loads((folder / "metrics.json").read_text())
    import tensorflow_model_analysis as tfma

    (path,) = folder.glob("**/Evaluator/evaluation/*")
    found = tfma.load_eval_result(str(path)).get_metrics_for_slice()
    metrics = {name: value.get("doubleValue") for name, value in found.items()}
    return {name: value for name, value in metrics.items() if value is not None}


def main() -> None:
    """Measures and prints every data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=",".join(CASES))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--sides", default=",".join(SIDES), help="ours first")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--picture", type=Path)
    arguments = parser.parse_args()
    prepare_environment()
    results: dict[str, Results] = {}
    with tempfile.TemporaryDirectory(prefix="sluice-speed-") as temporary:
        project = Path(temporary, "project")
        make_project(project, [])
        for name in arguments.data.split(","):
            case, data = CASES[name], project / "data" / name
            config = data.with_suffix(".json")
            config.write_text(json.dumps(prepare(case, project, data, arguments.scale)))
            results[name] = {side: [] for side in arguments.sides.split(",")}
            for turn, side in product(range(arguments.repeat), [*results[name]]):
                folder = Path(temporary, name, str(turn), side)
                found = measure(command(side, case, config, folder), project, folder)
                results[name][side].append(found)
                print(name, side, f"{found['wall s']:.1f} s", flush=True)
            show(name, results[name])
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    if arguments.picture:
        arguments.picture.write_text(draw(results))


def draw(results: dict[str, Results]) -> str:
    """Returns a picture: the median times of each data set, as parts of the slowest."""
    row, left, width = 18, 190, 360
    parts, y = [], 0
    for name, found in results.items():
        parts.append(text(8, y + 47, name))
        slowest = max(median(found, side, "wall s") for side in SIDES)
        for side, color in zip(SIDES, COLORS, strict=True):
            took = median(found, side, "wall s")
            end = left + round(width * took / slowest)
            parts += [
                text(left - 8, y + 13, TITLES[side], "end"),
                f'<rect x="{left}" y="{y + 2}" width="{end - left}" height="14" '
                f'fill="{color}"/>',
                text(end + 6, y + 13, f"{took:.1f} s"),
            ]
            y += row
        y += row
    return picture(left + width + 70, y, parts)


def median(results: Results, side: str, key: str) -> float:
    """Returns the median of a side's figure."""
    return statistics.median(found[key] for found in results[side])


def show(name: str, results: Results) -> None:
    """Prints the medians of a data set, with the ratios, and the nodes of ours."""
    sides = [*results]
    print(f"\n{name:<14}" + "".join(f"{side:>9}" for side in sides), end="")
    print("".join(f"{f'ours/{side}':>12}" for side in sides[1:]))
    for key in ("wall s", "CPU s", "peak MB", "kept MB"):
        values = [median(results, side, key) for side in sides]
        print(f"{key:<14}" + "".join(f"{value:>9.1f}" for value in values), end="")
        print("".join(f"{values[0] / value:>12.2f}" for value in values[1:]))
    metric = "auc" if name == "taxi" else "accuracy"
    for key in ("example_count", metric):
        values = [found[0]["metrics"][key] for found in results.values()]
        print(f"{key:<14}" + "".join(f"{value:>9.5g}" for value in values))
        if key == "example_count" and len({*values}) > 1:
            sys.exit("the sides have not evaluated the same examples")
    for side in [x for x in sides if x in ("ours", *ENGINES)]:
        for node in results[side][0]["nodes"]:
            took = [found["nodes"][node] for found in results[side]]
            print(f"  {side:<6}{node:<20}{statistics.median(took):>7.2f} s")


if __name__ == "__main__":
    main()
