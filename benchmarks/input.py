"""Benchmark: the Trainer's input, alone and together with a model.

``python benchmarks/input.py [--data fashion,jpeg] [--examples N] [--repeat 3]``

*fashion* is Fashion-MNIST, converted from Debian's package dataset-fashion-mnist, or
from ``--fashion-dir``; *jpeg* is 10,000 generated images of 192 x 192. In one process
and repeatedly in turn, examples per second are measured of the

* *input* alone, from memory: a,
* *model* alone, on a batch in memory: b,
* *both* together, by ``model.fit``. On a CPU they share the cores: ab/(a+b) is what can
  be reached; on a GPU the slower of the two.

Then the first epoch of the input, with counting and decoding, and later ones are
compared with those of another commit (``--before``), each in a process of its own,
in turn. The figures are medians, of wall time and of CPU time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
BEFORE = "d59abb2"
FASHION_DIR = Path("/usr/share/datasets/fashion-mnist")
SIDE = 192
SHARDS = 8
BATCH_SIZE = {"fashion": 128, "jpeg": 32}
# Of the model, which is slow on a CPU.
STEPS = {"fashion": 200, "jpeg": 100}
SHAPE = {"fashion": (28, 28, 1), "jpeg": (SIDE, SIDE, 3)}
CLASSES = tuple(range(10))
CLOCKS = ("wall", "CPU")
RUNS = ("input", "model", "both")


def write_fashion(folder: Path, source: Path | None, limit: int | None) -> None:
    """Writes the examples of Fashion-MNIST as Transform would."""
    from sample_data import catalog
    from sample_data.data_set import Source
    from sluice.tfrecords.tfrecord import read

    raw = folder / "raw"
    catalog.make("fashion-mnist", raw, source=Source(source or FASHION_DIR))
    import tensorflow as tf

    def examples(split: str) -> Iterator[dict[str, Any]]:
        for path in sorted(raw.glob(f"{split}-*")):
            for record in read(path):
                features = tf.train.Example.FromString(record).features.feature
                yield {
                    "image_xf": list(features["image"].bytes_list.value),
                    "label_xf": list(features["label"].int64_list.value),
                }

    for split in ("train", "eval"):
        _write(folder, split, list(examples(split))[:limit])


def write_jpeg(folder: Path, limit: int | None) -> None:
    """Writes generated photographs: smooth shapes with some noise."""
    import numpy as np
    import tensorflow as tf

    random = np.random.default_rng(1)

    def examples(count: int) -> Iterator[dict[str, Any]]:
        for index in range(count):
            coarse = random.integers(0, 256, (12, 12, 3)).astype(np.float32)
            smooth = tf.image.resize(coarse, (SIDE, SIDE), "bicubic").numpy()
            noisy = smooth + random.normal(0, 8, smooth.shape)
            pixels = np.clip(noisy, 0, 255).astype(np.uint8)
            data = tf.io.encode_jpeg(pixels, quality=90).numpy()
            yield {"image_xf": [data], "label_xf": [index % 10]}

    count = limit or 10_000
    _write(folder, "train", list(examples(count)))
    _write(folder, "eval", list(examples(max(1, count // 100))))


def _write(folder: Path, split: str, examples: list[dict[str, Any]]) -> None:
    from sample_data.tf_example import encode
    from sluice.tfrecords import tfrecord

    for shard in range(SHARDS):
        records = [encode(example) for example in examples[shard::SHARDS]]
        tfrecord.write(folder / f"{split}-{shard:02d}.gz", records)


class Output:
    """The part of TFTransformOutput that training uses."""

    def transformed_feature_spec(self) -> dict[str, Any]:
        import tensorflow as tf

        return {
            "image_xf": tf.io.FixedLenFeature([1], tf.string),
            "label_xf": tf.io.FixedLenFeature([1], tf.int64),
        }


def child(data: str, folder: str, which: str, repeat: int) -> None:
    """Measures in this process and prints the figures."""
    from sluice.compat import exclude_keras_from_autograph, prepare_environment

    prepare_environment()
    exclude_keras_from_autograph()
    from pipeline.config.feature_set import Feature, FeatureSet, Label

    height, width, channels = SHAPE[data]
    size = {"height": height, "width": width, "channels": channels}
    features = FeatureSet((Feature("image", "image", size),), Label("label", CLASSES))
    measure = {"before": _before, "input": _input, "both": _both}[which]
    print(json.dumps(measure(data, folder, features, repeat)))


Seconds = tuple[float, float]


def _before(data: str, folder: str, features: Any, repeat: int) -> list[Seconds]:
    """Returns wall and CPU time of each epoch of the other commit's input."""
    make_dataset = importlib.import_module("pipeline.training.data").make_dataset

    def start() -> Any:
        return make_dataset(
            [f"{folder}/train-*"],
            Output(),
            features,
            batch_size=BATCH_SIZE[data],
            shuffle_seed=1,
        )

    return _epochs(start, lambda dataset, epoch: dataset, repeat)


def _input(data: str, folder: str, features: Any, repeat: int) -> list[Seconds]:
    """Returns wall and CPU time of each epoch of this commit's input."""

    def epoch_of(made: Any, epoch: int) -> Any:
        return made.train(epoch).take(made.steps_per_epoch)

    return _epochs(lambda: _made(data, folder, features), epoch_of, repeat)


def _epochs(
    start: Callable[[], Any], epoch_of: Callable[[Any, int], Any], repeat: int
) -> list[Seconds]:
    seconds = []
    begin = _now()
    made = start()
    for epoch in range(1 + repeat):
        for _ in epoch_of(made, epoch):
            pass
        end = _now()
        seconds.append((end[0] - begin[0], end[1] - begin[1]))
        begin = end
    return seconds


def _made(data: str, folder: str, features: Any, cache: str = "memory") -> Any:
    import tensorflow as tf

    from pipeline.training.input.training_input import InputSettings, make_input
    from pipeline.training.strategy.distribution import Distribution

    return make_input(
        InputSettings([f"{folder}/train-*"], [f"{folder}/eval-*"], cache=cache),
        features,
        Output(),
        Distribution(tf.distribute.get_strategy(), "one_device", "", BATCH_SIZE[data]),
    )


def _both(data: str, folder: str, features: Any, repeat: int) -> list[dict[str, float]]:
    """Returns examples per second of wall and CPU time, in each repetition."""
    import tensorflow as tf

    from pipeline.training.build import model_inputs
    from pipeline.training.models.cnn import build_model

    made = _made(data, folder, features)
    filters = [16, 32] if data == "fashion" else [4, 8, 8, 16]
    model = build_model(model_inputs(features, Output()), {"filters": filters})
    model.compile("adam", "sparse_categorical_crossentropy")
    batch = next(iter(made.train()))
    same = tf.data.Dataset.from_tensors(batch).repeat()
    steps = min(made.steps_per_epoch, STEPS[data])
    examples = steps * BATCH_SIZE[data]
    model.fit(same, steps_per_epoch=3, verbose=0)
    gpus = len(tf.config.list_physical_devices("GPU"))
    figures = []
    for epoch in range(repeat):
        begin = _now()
        for _ in made.train(epoch).take(steps):
            pass
        alone = _now()
        model.fit(same, steps_per_epoch=steps, verbose=0)
        on_tensors, waited_s = _now(), made.waited_s() or 0.0
        model.fit(made.train(epoch), steps_per_epoch=steps, verbose=0)
        end = _now()
        waited_s = (made.waited_s() or 0.0) - waited_s
        one = {"gpus": gpus, "waited": waited_s / (end[0] - on_tensors[0])}
        for clock, name in enumerate(CLOCKS):
            times = (begin, alone, on_tensors, end)
            for what, (start, stop) in zip(RUNS, pairwise(times), strict=True):
                one[f"{what} {name}"] = examples / (stop[clock] - start[clock])
        figures.append(one)
    return figures


def _now() -> Seconds:
    return time.perf_counter(), time.process_time()


def run_child(root: Path, *arguments: Any) -> Any:
    """Runs ``child`` with the code below ``root`` and returns what it prints."""
    command = [sys.executable, __file__, "--root", str(root), "--child"]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    done = subprocess.run(
        [*command, *map(str, arguments)],
        env=environment,
        cwd=root,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"{arguments} failed:\n{done.stderr[-4000:]}")
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Checks a commit out in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "before"
        git = ["git", "-C", str(ROOT), "worktree"]
        add = [*git, "add", "--detach", str(path), commit]
        subprocess.run(add, check=True, capture_output=True)
        try:
            yield path
        finally:
            subprocess.run([*git, "remove", "--force", str(path)], check=True)


def compare(data: str, folder: Path, before: Path, repeat: int) -> None:
    """Measures one data set and prints its figures."""
    figures = run_child(ROOT, data, folder, "both", repeat)
    middle = {key: statistics.median(one[key] for one in figures) for key in figures[0]}
    print(f"{data}: waiting {middle['waited']:.1%} of the time")
    for clock in CLOCKS:
        rates = ", ".join(f"{run} {middle[f'{run} {clock}']:,.0f}/s" for run in RUNS)
        shares = []
        for one in figures:
            a, b, both = (one[f"{run} {clock}"] for run in RUNS)
            shares.append(both / (min(a, b) if one["gpus"] else a * b / (a + b)))
        reachable = "the slower" if middle["gpus"] else "ab/(a+b)"
        each = ", ".join(f"{share:.2f}" for share in shares)
        share = statistics.median(shares)
        print(f"  {clock}: {rates}; both / {reachable}: {share:.2f} ({each})")
    ours, theirs = [], []
    for _ in range(repeat):
        theirs.append(run_child(before, data, folder, "before", 2))
        ours.append(run_child(ROOT, data, folder, "input", 2))
    for name, epochs in (("first", slice(0, 1)), ("later", slice(1, None))):
        for place, clock in enumerate(CLOCKS):
            first, second = (
                statistics.median(one[place] for run in runs for one in run[epochs])
                for runs in (theirs, ours)
            )
            print(
                f"  {name} epoch: {first:.2f} s before, {second:.2f} s now ({clock}), "
                f"{first / second:.2f} times as fast",
                flush=True,
            )


def main() -> None:
    """Measures the data sets that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="fashion,jpeg")
    parser.add_argument("--fashion-dir", type=Path, help="folder of the idx files")
    parser.add_argument("--examples", type=int, help="training examples; default: all")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--before", default=BEFORE, help="commit to compare with")
    parser.add_argument("--root", default=str(ROOT), help=argparse.SUPPRESS)
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    # This script's own folder would come first.
    sys.path[0] = arguments.root
    if arguments.child:
        data, folder, which, repeat = arguments.child
        child(data, folder, which, int(repeat))
        return
    with tempfile.TemporaryDirectory() as folder, worktree(arguments.before) as before:
        for data in arguments.data.split(","):
            place = Path(folder) / data
            place.mkdir()
            if data == "fashion":
                write_fashion(place, arguments.fashion_dir, arguments.examples)
            else:
                write_jpeg(place, arguments.examples)
            compare(data, place, before, arguments.repeat)


if __name__ == "__main__":
    main()
