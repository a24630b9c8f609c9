"""Fixtures to run the Evaluator on small models."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord

_SCHEMA = """
feature { name: "x" type: FLOAT presence { min_fraction: 1 } shape { dim { size: 1 } } }
feature { name: "region" type: BYTES value_count { max: 1 } }
feature { name: "label" type: LABEL value_count { max: MOST } }
"""
_WEIGHT = """
feature { name: "w" type: KIND presence { min_fraction: 1 } shape { dim { size: 1 } } }
"""


@dataclass
class Evaluations:
    """Examples, models and evaluations in one folder, laid out as TFX does.

    Attributes:
      folder: holds everything.
      classes: of the label, whose values are the class ids; 0 for a regression.
      metrics: class names of the metrics.
      slices: lists of features to slice by.
      intervals: whether metrics have confidence intervals.
      weighted: the type of the feature ``w``, if it weighs the examples.
      several: whether an example may have several classes.
      targets: of a regression with several, each a thousandth of the one before.
    """

    folder: Path
    classes: int
    metrics: Sequence[str | Mapping[str, Any]] = ("ExampleCount",)
    slices: Sequence[Sequence[str]] = (("region",),)
    intervals: bool = False
    weighted: str = ""
    several: bool = False
    targets: Sequence[str] = ()
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        (self.folder / "schema").mkdir(parents=True)
        schema = _SCHEMA.replace("LABEL", "INT" if self.classes else "FLOAT")
        most = self.classes if self.several else max(1, len(self.targets))
        schema = schema.replace("MOST", str(most))
        schema += _WEIGHT.replace("KIND", self.weighted) if self.weighted else ""
        (self.folder / "schema" / "schema.pbtxt").write_text(schema)

    @property
    def class_names(self) -> list[str]:
        return self._label.class_names

    @property
    def _label(self) -> Any:
        from pipeline.config.label import Label

        if not self.classes:
            named = tuple(self.targets) or None
            return Label(feature="label", task="regression", targets=named)
        task = {"task": "multi_label"} if self.several else {}
        classes = tuple(range(self.classes))
        return Label.model_validate({"feature": "label", "classes": classes, **task})

    def write_examples(self, name: str, records: Iterable[Mapping[str, Any]]) -> Path:
        """Writes the split ``test``; a feature that is None is missing.

        A label may be a list of classes.
        """
        split = self.folder / name / "Split-test"
        split.mkdir(parents=True)
        tfrecord.write(
            split / "data_tfrecord-00000-of-00001.gz",
            [
                encode(
                    {
                        key: v if isinstance(v, list) else [v]
                        for key, v in record.items()
                        if v not in (None, [])
                    }
                )
                for record in records
            ],
        )
        return split.parent

    def write_model(self, name: str, slope: float, bend: float = 0.0) -> Path:
        """Writes a model whose probabilities follow from ``x`` and the slope.

        With a bend the second class of three is the likeliest around 0.

        A regression predicts their product. Of several labels the classes have
        probabilities of their own, the higher the class the lower.
        """
        import tensorflow as tf

        examples = tf.TensorSpec([None], tf.string, "examples")
        offsets = tf.range(self.classes, dtype=tf.float32)

        @tf.function(input_signature=[examples])
        def predict(examples: Any) -> Any:
            spec = {"x": tf.io.FixedLenFeature([1], tf.float32)}
            x = tf.io.parse_example(examples, spec)["x"]
            if not self.classes:
                sizes = [1000.0**-i for i in range(max(1, len(self.targets)))]
                return {"prediction": slope * x * sizes}
            if self.classes == 2:
                return {"probabilities": tf.sigmoid(slope * x)}
            if self.several:
                return {"probabilities": tf.sigmoid(slope * x - offsets)}
            scores = x * offsets - bend * (offsets - 1) ** 2
            return {"probabilities": tf.nn.softmax(slope * scores)}

        @tf.function(input_signature=[examples])
        def transform(examples: Any) -> Any:
            if self.several:
                given = tf.io.VarLenFeature(tf.int64)
                found = tf.io.parse_example(examples, {"label": given})["label"]
                places = tf.sparse.to_dense(found, -1)
                return {"label_xf": tf.reduce_sum(tf.one_hot(places, self.classes), 1)}
            dtype = tf.int64 if self.classes else tf.float32
            size = max(1, len(self.targets))
            spec = {"label": tf.io.FixedLenFeature([size], dtype, [-1] * size)}
            found = tf.io.parse_example(examples, spec)["label"]
            return {"label_xf": found if self.targets else found[:, 0]}

        signatures = {"serving_default": predict, "transform_features": transform}
        target = str(self.folder / name / "Format-Serving")
        tf.saved_model.save(tf.Module(), target, signatures=signatures)
        return self.folder / name

    def evaluate(
        self,
        examples: Path,
        model: Path,
        baseline: Path | None = None,
        *,
        custom_property: str = "",
    ) -> Path:
        """Runs the Evaluator's executor and returns its evaluation.

        The baseline has a custom property, if one is given.
        """
        from tfx.dsl.components.base import base_beam_executor
        from tfx.types import standard_artifacts

        from components.evaluator import Executor
        from pipeline.graph.beam_arguments import LOCAL_BEAM_ARGS

        number = next(self._numbers)
        target, blessing = (
            self.folder / name / str(number) for name in ("evaluation", "blessing")
        )
        for folder in (target, blessing):
            folder.mkdir(parents=True)
        context = base_beam_executor.BaseBeamExecutor.Context(
            beam_pipeline_args=list(LOCAL_BEAM_ARGS),
            tmp_dir=str(self.folder / "tmp"),
            unique_id=str(number),
        )
        inputs = self.inputs(examples, model, baseline)
        if custom_property:
            (given,) = inputs["baseline_model"]
            given.set_string_custom_property(custom_property, "true")
        Executor(context).Do(
            inputs,
            {
                "evaluation": artifact(standard_artifacts.ModelEvaluation, target),
                "blessing": artifact(standard_artifacts.ModelBlessing, blessing),
            },
            self.properties(),
        )
        return target

    def inputs(
        self, examples: Path, model: Path, baseline: Path | None = None
    ) -> dict[str, Any]:
        """Returns the input artifacts of an Evaluator."""
        from tfx.types import standard_artifacts

        inputs = {
            "examples": artifact(standard_artifacts.Examples, examples),
            "model": artifact(standard_artifacts.Model, model),
            "schema": artifact(standard_artifacts.Schema, self.folder / "schema"),
            "baseline_model": [],
        }
        if baseline:
            inputs["baseline_model"] = artifact(standard_artifacts.Model, baseline)
        inputs["examples"][0].split_names = '["train", "test"]'
        return inputs

    def properties(self) -> dict[str, Any]:
        """Returns the exec properties of an Evaluator."""
        from google.protobuf import json_format

        from pipeline.config.evaluate import Evaluate
        from pipeline.graph.eval_config import eval_config

        evaluate = Evaluate.model_validate(
            {"metrics": self.metrics, "slices": self.slices}
        )
        weight = "w" if self.weighted else None
        config = eval_config(evaluate, self._label, weight)
        # TFMA computes its intervals of single examples, in 20 parts that it merges.
        config.options.compute_confidence_intervals.value = self.intervals
        return {
            "eval_config": json_format.MessageToJson(config),
            "example_splits": '["test"]',
            "module_path": None,
        }


def artifact(kind: Any, uri: Path) -> list[Any]:
    """Returns an input or output of an executor: one artifact."""
    made = kind()
    made.uri = str(uri)
    return [made]


@pytest.fixture(scope="session")
def evaluations() -> type[Evaluations]:
    """Makes a place to evaluate in."""
    return Evaluations
