"""The same chain on a table with missing values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.load_config import load_config
from sluice.workspace import locate

pytestmark = pytest.mark.e2e


@pytest.fixture(scope="module")
def record(project: Path, run_config):
    return run_config(load_config("taxi", cwd=project), locate(project, "taxi"))


def test_it_reaches_its_targets(record) -> None:
    assert (record.status, record.pushes[0].state) == ("succeeded", "pushed")
    rows = {(row["check"], row["slice"]): row for row in record.gates[-1]["rows"]}
    overall = rows["auc", "overall"]
    card = rows["auc", "payment_type: Credit Card"]
    assert (overall["limit"], card["limit"]) == (">= 0.935", ">= 0.58")
    assert overall["actual"] >= 0.935
    assert card["actual"] >= 0.58


def test_plain_values_and_tf_examples_get_the_same_answer(
    project: Path, record, tmp_path: Path
) -> None:
    """Missing values included: they are absent in one form and null in the other."""
    import tensorflow as tf

    from serving.predictor import Predictor
    from sluice.records import tfrecord

    shard = project / "data" / "taxi" / "test-00000-of-00002.tfrecord.gz"
    predictor = Predictor(record.pushes[0].uri)
    lines = []
    for serialized in list(tfrecord.read(shard))[:40]:
        features = tf.train.Example.FromString(serialized).features.feature
        row = {}
        for name in predictor.features:
            kind = features[name].WhichOneof("kind") if name in features else None
            values = getattr(features[name], kind).value if kind else []
            value = values[0] if values else None
            row[name] = value.decode() if isinstance(value, bytes) else value
        lines.append(row)
    assert any(None in row.values() for row in lines)
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join(json.dumps(row) for row in lines))
    from_examples = list(predictor.predict_files([shard], limit=40))
    from_values = list(predictor.predict_files([rows]))
    for one, other in zip(from_examples, from_values, strict=True):
        assert one.label == other.label
        assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)


def test_the_label_is_optional_when_serving(project: Path, record) -> None:
    import tensorflow as tf

    from sluice.records import tfrecord

    shard = project / "data" / "taxi" / "test-00000-of-00002.tfrecord.gz"
    with_label = next(tfrecord.read(shard))
    example = tf.train.Example.FromString(with_label)
    label = example.features.feature["big_tip"].int64_list.value[0]
    del example.features.feature["big_tip"]
    without = example.SerializeToString()
    model = tf.saved_model.load(record.pushes[0].uri)
    served = model.signatures["serving_default"](tf.constant([with_label, without]))
    one, other = served["probabilities"].numpy()
    assert one == pytest.approx(other)
    transformed = model.signatures["transform_features"](
        tf.constant([with_label, without])
    )
    assert transformed["big_tip_xf"].numpy().tolist() == [[label], [-1]]
