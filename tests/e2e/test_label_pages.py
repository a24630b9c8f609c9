"""Pages of a regression and of several labels: their numbers are those of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn import metrics

from pipeline.config.load import load_config
from reports.formats import number
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord
from sluice.workspace import locate
from tests.kit.read_page import Page

pytestmark = pytest.mark.e2e

CONFIG = """
version: 1
name: NAME
data: {dir: data, splits: {train: "train*", eval: "eval*"}}
schema: schemas/both/schema.pbtxt
label: LABEL
features: {x: {kind: vector}}
model: dense
train: {epochs: 3, learning_rate: 0.01}
evaluate: {metrics: [METRICS, ExampleCount]}
"""
LABELS = {
    "prices": "{feature: price, task: regression}",
    "tags": "{feature: tags, task: multi_label}",
}
METRICS = {"prices": "MeanAbsoluteError", "tags": ""}
SCHEMA = """
default_environment: "TRAINING" default_environment: "SERVING"
feature { name: "x" type: FLOAT
  presence { min_fraction: 1 } shape { dim { size: 3 } } }
feature { name: "price" type: FLOAT not_in_environment: "SERVING"
  presence { min_fraction: 1 } shape { dim { size: 1 } } }
feature { name: "tags" type: BYTES domain: "tags" not_in_environment: "SERVING" }
string_domain { name: "tags" value: "low" value: "high" value: "odd" }
"""
TAGS = ["low", "high", "odd"]
CHANCE = np.random.default_rng(3)
X = CHANCE.standard_normal((900, 3)).astype(np.float32)
PRICES = (100 + 20 * X[:, 0] + 5 * CHANCE.standard_normal(900)).astype(np.float32)
HAS = X + 0.5 * CHANCE.standard_normal((900, 3)) > [0, 0.5, 1]
TRAIN = 600


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    root = tmp_path_factory.mktemp("labels")
    for name in ("configs", "schemas/both", "data"):
        (root / name).mkdir(parents=True)
    for name, label in LABELS.items():
        text = CONFIG.replace("NAME", name).replace("LABEL", label)
        text = text.replace("METRICS, ", METRICS[name] and f"{METRICS[name]}, ")
        (root / "configs" / f"{name}.yaml").write_text(text)
    (root / "schemas" / "both" / "schema.pbtxt").write_text(SCHEMA)
    rows: list[dict[str, Any]] = []
    for x, price, has in zip(X.tolist(), PRICES.tolist(), HAS, strict=True):
        tags = [name.encode() for name, has_it in zip(TAGS, has, strict=True) if has_it]
        rows.append({"x": x, "price": [price], **({"tags": tags} if tags else {})})
    tfrecord.write(root / "data" / "train-0", map(encode, rows[:TRAIN]))
    tfrecord.write(root / "data" / "eval-0", map(encode, rows[TRAIN:]))
    return root


def _run(root: Path, name: str, run_config: Any) -> tuple[Path, np.ndarray]:
    """Returns the page of a run, and what the served model predicts of its data."""
    import tensorflow as tf

    workspace = locate(root, name)
    record = run_config(load_config(name, cwd=root), workspace)
    assert record.status == "succeeded", (record.error, record.gates[-1:], record.notes)
    assert record.notes == []
    model = tf.saved_model.load(str(workspace.serving / "1"))
    examples = tf.constant([*tfrecord.read(root / "data" / "eval-0")])
    found = model.signatures["serving_default"](examples=examples)
    (key,) = found.keys() - {"label"}
    return workspace.run_dir(record.run_id) / "report.html", found[key].numpy()


def test_the_page_of_a_regression(data, run_config, report_pages):
    report, predictions = _run(data, "prices", run_config)
    page, true = Page(report.read_text("utf-8")), PRICES[TRAIN:].astype(float)
    errors = predictions[:, 0].astype(float) - true
    (measured, counted) = page.tables["metrics-0"]
    assert float(measured["Value"]) == pytest.approx(np.abs(errors).mean(), rel=1e-3)
    assert counted["Value"] == "300" and "300 predictions on eval" in page.text
    worst = np.argsort(-np.abs(errors))[:24]
    rows = page.tables["errors-0"]
    assert [row["Error"] for row in rows] == [number(errors[i]) for i in worst]
    assert [row["Place"].split()[-1] for row in rows] == [str(i + 1) for i in worst]
    assert f"Residuals: mean candidate {number(errors.mean())}" in page.text
    report_pages.check(report)


def test_the_page_of_several_labels(data, run_config, report_pages):
    report, sure = _run(data, "tags", run_config)
    page, true, named = Page(report.read_text("utf-8")), HAS[TRAIN:], sure >= 0.5
    rows = {row["Class"]: row for row in page.tables["labels"]}
    for i, name in enumerate(TAGS):
        of_class = true[:, i], named[:, i]
        assert rows[name]["Examples"] == str(true[:, i].sum())
        recall = metrics.recall_score(*of_class)
        assert rows[name]["Recall"].startswith(f"{recall:.3f}")
        assert rows[name]["F1"] == number(metrics.f1_score(*of_class))
        area = metrics.roc_auc_score(true[:, i], sure[:, i])
        assert rows[name]["AUC"] == number(area)
    wrong = (true != named).any(axis=1).sum()
    assert f"{wrong} of 300 predictions on eval were wrong" in page.text
    first = page.tables["mistakes-0"][0]
    at = int(first["Place"].split()[-1]) - 1
    said = [", ".join(np.array(TAGS)[x[at]]) or "none" for x in (true, named)]
    assert [first["True classes"], first["Predicted"]] == said
    report_pages.check(report)
