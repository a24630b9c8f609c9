"""Models of every kind that our trainer exports pass the serving check."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from google.protobuf import text_format
from tensorflow_metadata.proto.v0 import schema_pb2

from components.serving_check.settings import Settings
from pipeline.config.features import FeatureSet
from sample_data.tf_example import encode
from tests.kit.exported_models import write_examples

pytestmark = [pytest.mark.tf, pytest.mark.usefixtures("fast_servers")]

ONE, AT_MOST_ONE = "shape { dim { size: 1 } }", "value_count { max: 1 }"
LIST = "value_count { min: 0 }"
TWO = {"feature": "y", "classes": ["no", "yes"], "positive": "yes"}
SMALLEST = -(2**63)
_RANDOM = np.random.default_rng(8)


@dataclass(frozen=True)
class Column:
    """A raw feature.

    Attributes:
      kind: the dtype.
      shape: None for a list of any length.
      schema: what else the schema says.
      values: of the examples, in turn.
    """

    kind: str
    shape: Sequence[int] | None
    schema: str
    values: Sequence[Sequence[Any]]

    @property
    def spec(self) -> Any:
        import tensorflow as tf

        if self.shape is None:
            return tf.io.VarLenFeature(self.kind)
        return tf.io.FixedLenFeature(self.shape, self.kind)


@dataclass(frozen=True)
class Case:
    """A model of some columns and a label.

    Attributes:
      label: section ``label`` of a config.
      columns: by name; of others than ``y`` the model takes the sum.
      units: how many values it predicts.
      activation: of these.
      scale: of the weights.
      count: of the examples.
      hidden: features that a client does not know, beside the label.
    """

    label: Mapping[str, Any]
    columns: Mapping[str, Column]
    units: int = 1
    activation: str | None = "sigmoid"
    scale: float = 1.0
    count: int = 24
    hidden: Sequence[str] = ()

    def records(self) -> list[bytes]:
        return [
            encode(
                {
                    name: [*values]
                    for name, column in self.columns.items()
                    if (values := column.values[i % len(column.values)])
                }
            )
            for i in range(self.count)
        ]

    def export(self, folder: Path) -> None:
        import tensorflow as tf

        from pipeline.training.export import export_model

        features = FeatureSet.model_validate(
            {
                "features": {"x": {"kind": "numeric"}},
                "label": self.label,
                "sample_weight": next(iter(self.hidden), None),
            }
        )
        inputs = tf.keras.Input((1,), name="x_xf")
        start = tf.keras.initializers.RandomNormal(0.0, self.scale, seed=3)
        last = tf.keras.layers.Dense(self.units, self.activation, False, start)
        model = tf.keras.Model({"x_xf": inputs}, last(inputs))
        export_model(model, str(folder), features, self, all_raw_features=True)

    # What the export takes of a TFTransformOutput.
    def raw_feature_spec(self) -> dict[str, Any]:
        return {name: column.spec for name, column in self.columns.items()}

    @property
    def raw_metadata(self) -> Any:
        text = "".join(
            f"feature {{ name: '{name}' {column.schema} }}"
            for name, column in self.columns.items()
        )
        return SimpleNamespace(schema=text_format.Parse(text, schema_pb2.Schema()))

    def transform_features_layer(self) -> Callable[..., Any]:
        import tensorflow as tf

        def number(value: Any) -> Any:
            if isinstance(value, tf.sparse.SparseTensor):
                default = "" if value.dtype == tf.string else 0
                value = tf.sparse.to_dense(value, tf.cast(default, value.dtype))
            if value.dtype == tf.string:
                hashed = tf.strings.to_hash_bucket_fast(value, 97) % 7
                value = tf.where(value == "", tf.zeros_like(hashed), hashed)
            if value.dtype == tf.int64:  # Missing, as NaN is.
                value = tf.where(value == SMALLEST, tf.zeros_like(value), value)
            value = tf.cast(value, tf.float32)
            value = tf.where(tf.math.is_finite(value), value, tf.zeros_like(value))
            return tf.reduce_sum(value, axis=[*range(1, value.shape.rank)])

        def transform(raw: dict[str, Any]) -> dict[str, Any]:
            parts = [number(x) for name, x in raw.items() if name != "y"]
            return {"x_xf": tf.math.tanh(tf.add_n(parts) / 10.0)[:, None]}

        return transform


def labels(*values: Any, kind: str = "string") -> Column:
    return Column(kind, [len(values[0])], ONE, values)


NUMBER = Column("float32", [1], ONE, _RANDOM.normal(size=[24, 1]).tolist())
YES_NO = labels([b"no"], [b"yes"])
NUMBERS = labels([1.0], [2.5], kind="float32")
ABC = labels([b"a"], [b"b"], [b"c"])
OF_ABC = {"feature": "y", "classes": [*"abc"]}


def two(**columns: Column) -> Case:
    return Case(TWO, {"y": YES_NO, **columns})


CASES = {
    "two_classes": two(x=NUMBER),
    "a_probability_that_is_the_threshold": Case(
        {**TWO, "threshold": 0.5}, {"y": YES_NO, "x": NUMBER}, scale=0.0
    ),
    "three_classes": Case(OF_ABC, {"y": ABC, "x": NUMBER}, 3, "softmax"),
    "three_equal_probabilities": Case(
        OF_ABC, {"y": ABC, "x": NUMBER}, 3, "softmax", scale=0.0
    ),
    "names_of_classes": Case(
        {"feature": "y", "classes": ['é, "b"', "年", " "]},
        {"y": labels(["年".encode()]), "x": NUMBER},
        *(3, "softmax"),
    ),
    "numbers_as_classes": Case(
        {"feature": "y", "classes": [3, 7, 9]},
        {"y": labels([3], [7], [9], kind="int64"), "x": NUMBER},
        *(3, "softmax"),
    ),
    "several_labels": Case(
        {**OF_ABC, "task": "multi_label"},
        {"y": labels([0, 1, 1], [0, 0, 0], kind="int64"), "x": NUMBER},
        units=3,
    ),
    "regression": Case(
        {"feature": "y", "task": "regression"}, {"y": NUMBERS, "x": NUMBER}, 1, None
    ),
    "regression_of_millions": Case(
        {"feature": "y", "task": "regression"},
        {"y": NUMBERS, "x": NUMBER},
        *(1, None, 5e6),
    ),
    "several_targets": Case(
        {"feature": "y", "task": "regression", "targets": ["width", "height"]},
        {"y": labels([1.0, 2.0], kind="float32"), "x": NUMBER},
        *(2, None),
    ),
    "vectors": two(
        place=Column("float32", [2], "shape { dim { size: 2 } }", [[0.5, 1.5]]),
        grid=Column(
            "int64",
            [2, 3],
            "shape { dim { size: 2 } dim { size: 3 } }",
            [[1, 2, 3, 4, 5, 6], [SMALLEST + 1, 2**62, 0, 0, 0, 0]],
        ),
    ),
    "lists": two(
        tags=Column("string", None, LIST, [[], [b"a", b"\xff\x00"], [b"b"] * 9]),
        ids=Column("int64", None, LIST, [[5], [], [1, 2, 3]]),
        sizes=Column("float32", None, LIST, [[], [1.25, 2.0]]),
    ),
    "lists_without_values": two(x=NUMBER, ids=Column("int64", None, LIST, [[]])),
    "missing_values": two(
        a=Column("float32", None, AT_MOST_ONE, [[], [1.0], [math.nan], [math.inf]]),
        b=Column("int64", None, AT_MOST_ONE, [[7], [], [SMALLEST]]),
        c=Column("string", None, AT_MOST_ONE, [[b"t"], [b""], [], [b"two words"]]),
    ),
    "bytes_of_pixels": two(
        x=Column("string", [1], ONE, [[_RANDOM.bytes(5000)], [bytes(5000)]])
    ),
    "names_of_features": two(
        **{
            name: NUMBER
            for name in ("examples", "label", "2nd", "A", "a", "b/1 c", "年", "self")
        }
    ),
    "weights_of_examples": Case(
        TWO, {"y": YES_NO, "x": NUMBER, "w": NUMBER}, hidden="w"
    ),
    "one_example": Case(TWO, {"y": YES_NO, "x": NUMBER}, count=1),
}


@pytest.mark.parametrize("name", CASES)
def test_a_good_model_passes(name, tmp_path):
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    from components.serving_check.check import check_model

    case, model = CASES[name], tmp_path / "model"
    case.export(model)
    settings = Settings(split="test", hidden=("y", *case.hidden), batch=8)
    examples = write_examples(tmp_path / "examples", test=case.records()).uri
    verdict = check_model(model, model, examples, settings)
    assert verdict.passed, verdict.causes
    names = ("serving_default", "predict_values")
    parts = ("", " again", " as evaluated")
    found = [row.check for row in verdict.rows]
    assert {f"{x}{part}" for x in names for part in parts} < {*found}

    # What the warm-up file asks is what the signatures take.
    signatures = tf.saved_model.load(str(model)).signatures
    file = str(model / "assets.extra" / "tf_serving_warmup_requests")
    for record in tf.data.TFRecordDataset(file).as_numpy_iterator():
        log = prediction_log_pb2.PredictionLog.FromString(record).predict_log.request
        inputs = {key: tf.make_ndarray(x) for key, x in log.inputs.items()}
        answer = signatures[log.model_spec.signature_name](
            **{key: tf.constant(x) for key, x in inputs.items()}
        )
        assert len(next(iter(answer.values()))) in (1, 8)
