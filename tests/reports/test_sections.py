"""What the sections Data, Training, Model and Serving show of a run's documents."""

import re
from itertools import pairwise
from typing import Any

import pytest

from reports.run_page import render_run
from reports.sections import data, features, model, serving, training
from tests.kit import protos
from tests.kit.runs import a_check, a_gate
from tests.reports.generated_run import _documents

pytestmark = pytest.mark.unit


@pytest.fixture
def documents():
    """A document of each kind, see ``generated_run``."""
    return _documents(features=4, slices=3)


def _build(section: Any, run: Any) -> Any:
    return section.build(run)


def _of(*found, **splits):
    return {"statistics": {"splits": {"train": protos.split(*found), **splits}}}


def _rows(table):
    """Returns the cells of each row by the label of their column."""
    labels = [column.label for column in table.columns]
    return [dict(zip(labels, row, strict=True)) for row in table.rows]


@pytest.mark.parametrize("section", [data, training, model])
def test_nothing_without_documents(run_with, section):
    assert _build(section, run_with()) is None


def test_the_data_of_a_run(run_with, documents):
    view = _build(data, run_with(documents))
    train, *_ = _rows(view.examples)
    assert (train["Split"], train["Examples"], train["Accepted data"]) == (
        "train",
        100,
        100,
    )
    assert view.baseline.endswith("by hand: by hand.")
    assert "1 record in the quarantine (checksum: 1), 10 B lost" in view.bad_summary
    (span,) = _rows(view.spans)
    assert (span["train"], span["Files"], span["Bad records"]) == (100, 3, 3)
    (anomaly,) = _rows(view.anomalies)
    assert (str(anomaly["Result"]), anomaly["Feature"]) == ("error", "feature 1")
    schema = _rows(view.schema)[0]
    assert schema["Domain"] == "string known: value 1"
    assert schema["Values per example"] == "shape [1]"
    assert schema["Required in"] == "50 % of the examples, 1 example"
    assert schema["Environments"] == "not in SERVING"
    assert schema["Comparators"] == "drift: L-infinity ≤ 0.5000"
    (image,) = view.images.features
    assert _rows(image.table)[0]["Width x height"] == "PNG 8 x 8"
    assert image.equal.is_leak and len(image.gallery) == 2


def test_misses_of_the_data_gate_come_first_then_what_is_near_its_limit(run_with):
    names = ["calm", "warned", "near", "failed", "far"]
    moved = [
        {"feature": name, "measure": "L-infinity", "distance": value, "limit": 0.1}
        for name, value in (("near", 0.09), ("far", 0.01))
    ]
    drift = {"check": "drift", "split": "train", "features": moved}
    misses = [
        a_check(name, passed=False, severity=severity, feature=name, kind="x")
        for name, severity in (("warned", "warn"), ("failed", "fail"))
    ]
    found = _of(*(protos.numeric(name, [1.0]) for name in names))
    found["distances"] = {"comparisons": [drift]}
    view = _build(features, run_with(found, gates=[a_gate("data", *misses)]))
    assert [x.name for x in view.cards] == ["failed", "warned", "near", "far", "calm"]
    near = "train since the accepted data: L-infinity 0.09000, limit 0.1000"
    assert view.cards[2].remarks == [near]


def test_statistics_of_a_feature(run_with):
    text = protos.text("word", {"a": 60.0, "b": 30.0}, present=90, missing=10)
    numbers = protos.numeric("trips", [3.0, 1.0], median=1.0, max=2.0, type="INT")
    found = _of(text, numbers, eval=protos.split(text))
    word, trips = _build(features, run_with(found)).cards
    assert word.header == ["train", "eval"] and word.kind == "text"
    assert ["missing", "10", "10"] in word.rows
    assert "train: 66.7 %\neval: 66.7 %" in str(word.chart)
    assert ["max", "2"] in trips.rows and trips.kind == "int"
    found = _of(text)
    found["statistics"]["privacy"] = {"sensitive": ["word"]}
    (word,) = _build(features, run_with(found, run_id="2")).cards
    assert (word.chart, word.kind) == (None, "text, sensitive")


def test_whole_numbers_are_not_cut_unevenly(run_with):
    """Of ten buckets over 0 to 12, three hold two whole numbers."""
    edges = [1.2 * i for i in range(11)]
    feature = protos.numeric("n", type="INT")
    held = [sum(low <= n < high for n in range(12)) for low, high in _pairs(edges)]
    held[-1] += 1
    feature["num_stats"]["histograms"][0]["buckets"] = [
        {"low_value": low, "high_value": high, "sample_count": 10.0 * count}
        for (low, high), count in zip(_pairs(edges), held, strict=True)
    ]
    (card,) = _build(features, run_with(_of(feature))).cards
    shares = {float(x) for x in re.findall(r"train: ([\d.]+) %<", str(card.chart))}
    assert shares and max(shares) - min(shares) < 8


def _pairs(edges):
    return list(pairwise(edges))


def test_a_histogram_in_one_bucket_shows_the_middle_of_the_values(run_with):
    quantiles = [float(i * i) for i in range(10)] + [20_000.0]
    skewed = protos.numeric("fare", [95.0, 5.0], quantiles)
    (card,) = _build(features, run_with(_of(skewed))).cards
    assert "The lowest and the highest tenth" in card.remarks[-1]
    assert "20,000" not in str(card.chart)


def test_metrics_with_interval_baseline_and_limit(run_with, documents):
    gate = a_gate("model", a_check("auc", limit=0.4))
    view = _build(model, run_with(documents, gates=[gate]))
    (evaluation,) = view.evaluations
    auc, *_ = _rows(evaluation.overall)
    assert auc["Metric"] == "auc" and auc["Value"] == pytest.approx(0.91)
    assert (auc["Interval"], auc["Limit"]) == ("0.8100 to 1.010", "≥ 0.4")
    assert auc["Change"] == pytest.approx(0.02) and str(auc["Result"]) == "pass"
    assert evaluation.order == "Worst first, by the change of auc."
    assert {row["Slice"] for row in _rows(evaluation.slices)} == {
        f"where: slice-{i}" for i in range(3)
    }


def test_slices_are_worst_first_by_the_metric_of_the_gate(run_with):
    slices = [
        protos.slice_metrics({"auc": value, "examples_per_class": counts}, where=name)
        for name, value, counts in (
            ("good", 0.9, [5, 5]),
            ("bad", 0.6, [5, 5]),
            ("one class", 0.0, [5, 0]),
        )
    ]
    overall = protos.slice_metrics({"auc": 0.8, "loss": 0.5})
    found = {"metrics": protos.evaluation(overall, *slices)}
    gates = [a_gate("model", a_check("auc"))]
    (evaluation,) = _build(model, run_with(found, gates=gates)).evaluations
    names = [row["Slice"].removeprefix("where: ") for row in _rows(evaluation.slices)]
    assert names == ["bad", "good", "one class"]
    assert _rows(evaluation.slices)[-1]["auc"] == "one class"


def test_two_classes_have_curves_and_thresholds(run_with, documents):
    (evaluation,) = _build(model, run_with(documents)).evaluations
    found = evaluation.classification
    titles = [title.partition(";")[0] for title, _ in found.charts]
    assert titles == ["ROC", "Precision and recall", "Calibration"]
    middle = _rows(found.thresholds.table)[10]
    # Of 100 - i negatives and i + 1 positives in bucket i.
    assert middle["Threshold"] == 0.5
    assert middle["True positive"] == sum(range(51, 101))
    assert found.matrix.names == ["no", "yes"]


def _matrix(size, wrong):
    entries = [
        {"actual_class_id": i, "predicted_class_id": i, "num_weighted_examples": 10.0}
        for i in range(size)
    ]
    entries.append({"predicted_class_id": 1, "num_weighted_examples": wrong})
    del entries[0]["actual_class_id"], entries[0]["predicted_class_id"]
    tables = {"matrices": [{"entries": entries}, {"threshold": 0.5}]}
    name = "multi_class_confusion_matrix_at_thresholds"
    plot = {"plot_keys_and_values": [{"key": {}, "value": {name: tables}}]}
    metrics = protos.slice_metrics({"examples_per_class": [10] * size})
    return {"metrics": protos.evaluation(metrics, plots=[plot])}


def test_classes_that_are_confused(run_with):
    (few,) = _build(model, run_with(_matrix(3, 4.0))).evaluations
    name, examples, cells = few.classification.matrix.rows[0]
    assert (name, examples) == ("0", 14)
    assert [cell[:2] for cell in cells] == [(10, "71.4 %"), (4, "28.6 %"), (0, "0 %")]
    worst = _rows(few.classification.classes)[0]
    assert (worst["Class"], worst["Precision"]) in {("0", 1.0), ("1", 10 / 14)}
    (many,) = _build(model, run_with(_matrix(30, 4.0), run_id="2")).evaluations
    (pair,) = _rows(many.classification.pairs)
    assert (pair["True class"], pair["Predicted"], pair["Examples"]) == ("0", "1", 4.0)


def test_plots_of_a_config_are_drawn(run_with):
    matrices = [
        {"threshold": i / 4, "true_positives": 4.0 - i, "false_positives": 4.0 - i}
        | {"true_negatives": float(i), "false_negatives": float(i)}
        for i in range(5)
    ]
    buckets = [{"num_weighted_examples": 4.0, "total_weighted_label": 2.0}]
    value = {
        "confusion_matrix_at_thresholds": {"matrices": matrices},
        "calibration_histogram_buckets": {"buckets": buckets},
    }
    plot = {"plot_keys_and_values": [{"key": {"name": "mine"}, "value": value}]}
    found = protos.evaluation(protos.slice_metrics({"auc": 1.0}), plots=[plot])
    (evaluation,) = _build(model, run_with({"metrics": found})).evaluations
    assert [title for title, _ in evaluation.classification.charts] == [
        "ROC, mine",
        "Precision and recall, mine",
        "Calibration, mine, candidate",
    ]


def test_mistakes_are_pictures_or_rows(run_with, documents):
    privacy = {"private": False, "sensitive": ["user"], "label": "label"}
    documents["mistakes"]["privacy"] = privacy
    (view,) = _build(model, run_with(documents)).mistakes
    assert view.summary == "24 of 100 predictions on test were wrong (24 %)."
    assert (len(view.pictures), view.table, view.withheld) == (12, None, ["user"])
    for mistake in documents["mistakes"]["mistakes"]:
        mistake["images"] = []
    (view,) = _build(model, run_with(documents, run_id="2")).mistakes
    row = _rows(view.table)[0]
    assert (row["feature 0"], row["feature 1"]) == ("3.500", "value 1")
    assert row["Place"] == "Split-test/data-0.gz, record 0"


def test_a_training(run_with, documents):
    view = _build(training, run_with(documents))
    (found,) = view.trainings
    assert [title for title, _ in found.charts] == [
        "loss",
        "examples per second",
        "waiting for input",
    ]
    loss = str(found.charts[0][1])
    assert ">train</text>" in loss and ">eval</text>" in loss and "chosen: 2" in loss
    tiles = {name: (value, remark) for name, value, remark in found.tiles}
    assert tiles["Epochs"] == ("3", "weights of epoch 2")
    assert tiles["Batch size"] == ("32", "2 replicas, float32")
    assert tiles["Device memory"] == ("2 MB", "peak")
    (summary,) = view.models
    row = _rows(summary.table)[0]
    assert (row["Class"], row["Output shape"]) == ("Dense", "any x 3")
    assert summary.total == "420 parameters: 420 trainable, 0 non-trainable, 3 MB."
    documents["epochs"]["training"] = None
    assert _build(training, run_with(documents, run_id="2")).models == []


def test_a_served_model(run_with, documents):
    run = run_with(documents)
    view = _build(serving, run)
    assert view.facts == [("Version 3", "pushed: /serving/3")]
    assert _rows(view.versions)[0]["Version"] == 3
    (signature,) = view.signatures
    tensor = _rows(signature.tensors)[0]
    assert (tensor["Name"], tensor["Shape"]) == ("examples", "[?]")
    assert _build(serving, run_with(pushes=[], run_id="2")) is None
    assert "cannot be drawn" not in render_run(run)


def test_private_and_sensitive_data_is_said_to_be_hidden(run_with, documents):
    private = {"privacy": {"private": True, "sensitive": [], "label": None}}
    documents["samples"] |= {**private, "records": {}, "features": []}
    documents["mistakes"] |= {**private, "mistakes": []}
    page = render_run(run_with(documents))
    assert "no samples of the data are shown" in page
    assert "data:image" not in page
