"""Benchmark: the Evaluator's time by number of classes.

``python benchmarks/evaluator.py [--classes 10,1000] [--examples 2000] [--pairs 5]``

Models that differ only in their last layer are evaluated on the same examples, with
labels of ten classes and the pipeline's EvalConfig: two metrics, overall and on three
slices. All runs alternate in one process, after one warm-up; the ratio is that of the
medians.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from sample_data.tf_example import encode  # noqa: E402
from sluice.compat import prepare_environment  # noqa: E402
from sluice.tfrecords import tfrecord  # noqa: E402

_FEATURES = 64
_METRICS = ("SparseCategoricalAccuracy", "SparseCategoricalCrossentropy")


def write_examples(folder: Path, count: int) -> Path:
    """Writes the split ``test`` of an Examples artifact."""
    source = random.Random(0)
    split = folder / "Split-test"
    split.mkdir(parents=True)
    tfrecord.write(
        split / "data_tfrecord-00000-of-00001.gz",
        [
            encode(
                {
                    "x": [source.random() for _ in range(_FEATURES)],
                    "region": [source.choice([b"north", b"south", b"west"])],
                    "label": [source.randrange(10)],
                }
            )
            for _ in range(count)
        ],
    )
    return folder


def write_schema(folder: Path) -> Path:
    """Writes the Schema artifact of these examples."""
    folder.mkdir()
    (folder / "schema.pbtxt").write_text(
        f"""
        feature {{ name: "x" type: FLOAT presence {{ min_fraction: 1 }}
                  shape {{ dim {{ size: {_FEATURES} }} }} }}
        feature {{ name: "region" type: BYTES presence {{ min_fraction: 1 }}
                  shape {{ dim {{ size: 1 }} }} }}
        feature {{ name: "label" type: INT presence {{ min_fraction: 1 }}
                  shape {{ dim {{ size: 1 }} }} }}
        """
    )
    return folder


def write_model(folder: Path, classes: int) -> Path:
    """Writes a Model artifact with the signatures of ``pipeline.training.export``."""
    import tensorflow as tf

    weights = tf.random.stateless_normal((_FEATURES, classes), (1, 2))
    names = tf.constant([f"class {index}" for index in range(classes)])
    examples = tf.TensorSpec([None], tf.string, "examples")

    @tf.function(input_signature=[examples])
    def predict(examples: Any) -> Any:
        spec = {"x": tf.io.FixedLenFeature([_FEATURES], tf.float32)}
        x = tf.io.parse_example(examples, spec)["x"]
        probabilities = tf.nn.softmax(x @ weights)
        best = tf.argmax(probabilities, axis=1)
        return {
            "probabilities": probabilities,
            "label": tf.gather(names, best)[:, None],
        }

    @tf.function(input_signature=[examples])
    def transform(examples: Any) -> Any:
        spec = {"label": tf.io.FixedLenFeature([1], tf.int64)}
        return {"label_xf": tf.io.parse_example(examples, spec)["label"][:, 0]}

    signatures = {"serving_default": predict, "transform_features": transform}
    target = str(folder / "Format-Serving")
    tf.saved_model.save(tf.Module(), target, signatures=signatures)
    return folder


def evaluate(
    folder: Path, model: Path, classes: int, number: int
) -> tuple[float, float]:
    """Evaluates a model as the Evaluator node does; returns seconds and CPU seconds."""
    from google.protobuf import json_format
    from tfx.dsl.components.base import base_beam_executor
    from tfx.types import standard_artifacts

    from components.evaluator.executor import Executor
    from pipeline.config.feature_set import Label
    from pipeline.graph.arguments import eval_config
    from pipeline.graph.locations import LOCAL_BEAM_ARGS

    def artifact(kind: Any, uri: Path) -> list[Any]:
        made = kind()
        made.uri = str(uri)
        return [made]

    examples = artifact(standard_artifacts.Examples, folder / "examples")
    examples[0].split_names = '["test"]'
    label = Label("label", tuple(range(classes)))
    config = eval_config([(name, None, {}) for name in _METRICS], [["region"]], label)
    context = base_beam_executor.BaseBeamExecutor.Context(
        beam_pipeline_args=list(LOCAL_BEAM_ARGS),
        tmp_dir=str(folder / "tmp"),
        unique_id=str(number),
    )
    start, cpu_start = time.perf_counter(), time.process_time()
    Executor(context).Do(
        {
            "examples": examples,
            "model": artifact(standard_artifacts.Model, model),
            "schema": artifact(standard_artifacts.Schema, folder / "schema"),
        },
        {
            "evaluation": artifact(
                standard_artifacts.ModelEvaluation, folder / f"evaluation-{number}"
            )
        },
        {
            "eval_config": json_format.MessageToJson(config),
            "example_splits": '["test"]',
        },
    )
    return time.perf_counter() - start, time.process_time() - cpu_start


def main() -> None:
    """Runs the pairs and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--classes", default="10,1000")
    parser.add_argument("--examples", type=int, default=2000)
    parser.add_argument("--pairs", type=int, default=5)
    arguments = parser.parse_args()
    sizes = [int(size) for size in arguments.classes.split(",")]
    prepare_environment()
    with tempfile.TemporaryDirectory(prefix="sluice-evaluator-bench-") as name:
        folder = Path(name)
        write_examples(folder / "examples", arguments.examples)
        write_schema(folder / "schema")
        models = {size: write_model(folder / f"model-{size}", size) for size in sizes}
        runs: dict[int, list[tuple[float, float]]] = {size: [] for size in sizes}
        evaluate(folder, models[sizes[0]], sizes[0], 0)
        for pair in range(arguments.pairs):
            for index, size in enumerate(sizes):
                number = 1 + pair * len(sizes) + index
                runs[size].append(evaluate(folder, models[size], size, number))
                wall, cpu = runs[size][-1]
                print(f"{size:5} classes {wall:8.2f} s {cpu:8.2f} s CPU", flush=True)
    first: list[float] = []
    for size in sizes:
        medians = [
            statistics.median(values) for values in zip(*runs[size], strict=True)
        ]
        first = first or medians
        wall, cpu = medians
        print(
            f"{size:5} classes, medians: {wall:.2f} s ({wall / first[0]:.2f} x), "
            f"{cpu:.2f} s CPU ({cpu / first[1]:.2f} x)"
        )


if __name__ == "__main__":
    main()
