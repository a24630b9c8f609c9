"""The metrics document, from TFMA's files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from runners.local.document_content import DescribedNode
from runners.local.write_documents import write_documents
from sluice.errors import DataError, WorkspaceError
from sluice.project import own_root
from sluice.record.documents import metrics_document as module
from sluice.record.documents.metrics_document import metrics_document
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

CASH = (("payment", "Cash"),)
LATE = (("hour", 23), ("fare", 1.5))


def _key(name: str, **options: Any) -> Any:
    from tensorflow_model_analysis.metrics import metric_types

    return metric_types.MetricKey(name, **options)


def _evaluation(
    directory: Path,
    metrics: list[tuple[Any, dict[Any, Any]]],
    plots: list[tuple[Any, dict[Any, Any]]] | None = None,
) -> Path:
    """Writes an evaluation as TFMA does, by TFMA's own conversion."""
    from tensorflow_model_analysis.writers import (
        metrics_plots_and_validations_writer as writer,
    )

    directory.mkdir(exist_ok=True)
    (directory / "eval_config.json").write_text("{}")
    tfrecord.write(
        directory / "metrics-00000-of-00001.tfrecord",
        [
            writer.convert_slice_metrics_to_proto(item, None).SerializeToString()
            for item in metrics
        ],
    )
    tfrecord.write(
        directory / "plots-00000-of-00001.tfrecord",
        [
            writer.convert_slice_plots_to_proto(item, None).SerializeToString()
            for item in plots or []
        ],
    )
    return directory


def _rows(directory: Path, *columns: str) -> list[tuple[Any, ...]]:
    document = metrics_document(directory)
    assert document is not None
    rows: list[Any] = document["metrics"]
    return [tuple(row[column] for column in columns) for row in rows]


def _values(directory: Path, values: dict[str, Any]) -> dict[str, Any]:
    keys = {_key(name): value for name, value in values.items()}
    ((metrics,),) = _rows(_evaluation(directory, [((), keys)]), "metrics")
    json.dumps(metrics, allow_nan=False)
    return metrics


def _listed(before: str) -> set[str]:
    """Returns the first column of a table of ``docs/run_record.md``."""
    page = (own_root() / "docs" / "run_record.md").read_text("utf-8")
    table = re.search(r"(^\| `.*\n)+", page.partition(f"\n{before}")[2], re.MULTILINE)
    assert table is not None
    return {
        name
        for line in table[0].splitlines()
        for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    }


def _confusion() -> Any:
    from tensorflow_model_analysis.proto import metrics_for_slice_pb2

    matrices = metrics_for_slice_pb2.ConfusionMatrixAtThresholds()
    for i in range(3):
        matrices.matrices.add(
            threshold=i / 2, true_positives=2 - i, true_negatives=i, precision=0.25
        )
    return matrices


def test_slices_come_after_overall_and_have_their_values(tmp_path: Path) -> None:
    auc = _key("auc")
    slices = [(LATE, {auc: 0.7}), (CASH, {auc: 0.8}), ((), {auc: 0.9})]
    assert _rows(_evaluation(tmp_path, slices), "slice", "metrics") == [
        ({}, {"auc": 0.9}),
        ({"payment": "Cash"}, {"auc": 0.8}),
        ({"hour": 23, "fare": 1.5}, {"auc": 0.7}),
    ]


def test_a_model_without_a_name_is_the_candidate(tmp_path: Path) -> None:
    alone = [((), {_key("auc"): 0.9})]
    assert _rows(_evaluation(tmp_path, alone), "model") == [("candidate",)]


def test_candidate_baseline_and_their_change(tmp_path: Path) -> None:
    metrics = {
        _key("auc", model_name="candidate"): 0.9,
        _key("auc", model_name="baseline"): 0.8,
        _key("auc", model_name="candidate", is_diff=True): 0.1,
    }
    directory = _evaluation(tmp_path, [((), metrics)])
    assert _rows(directory, "model", "change", "metrics") == [
        ("baseline", False, {"auc": 0.8}),
        ("candidate", False, {"auc": 0.9}),
        ("candidate", True, {"auc": 0.1}),
    ]


def test_classes_outputs_weights_and_averages_have_rows_of_their_own(
    tmp_path: Path,
) -> None:
    from tensorflow_model_analysis.metrics import metric_types

    metrics = {
        _key("recall", sub_key=metric_types.SubKey(class_id=10)): 0.1,
        _key("recall", sub_key=metric_types.SubKey(class_id=2)): 0.2,
        _key("recall", sub_key=metric_types.SubKey(class_id=0)): 0.3,
        _key("recall", output_name="tip", example_weighted=True): 0.4,
        _key(
            "recall", aggregation_type=metric_types.AggregationType(macro_average=True)
        ): 0.5,
    }
    # TFMA sorts the keys, which it cannot where their forms are mixed.
    directory = _evaluation(tmp_path, [((), {key: metrics[key]}) for key in metrics])
    columns = ("sub_key", "output", "example_weighted", "aggregation", "metrics")
    assert _rows(directory, *columns) == [
        ({}, "", False, "macro_average", {"recall": 0.5}),
        ({"class_id": 0}, "", False, None, {"recall": 0.3}),
        ({"class_id": 2}, "", False, None, {"recall": 0.2}),
        ({"class_id": 10}, "", False, None, {"recall": 0.1}),
        ({}, "tip", True, None, {"recall": 0.4}),
    ]


def test_slices_compared_with_each_other(tmp_path: Path) -> None:
    directory = _evaluation(tmp_path, [(((), CASH), {_key("auc"): 0.1})])
    assert _rows(directory, "slice", "compared_with") == [({"payment": "Cash"}, {})]


def test_forms_of_a_value(tmp_path: Path) -> None:
    from tensorflow_model_analysis import types

    bounded = types.ValueWithTDistribution(0.5, 0.1, 20, 0.6)
    values = _values(
        tmp_path,
        {
            "auc": float("nan"),
            "bounded": bounded,
            "matrix": np.array([[1, 2], [3, 4]]),
            "names": np.array(["a", "b"]),
            "remark": "fine",
            "confusion": None,
        },
    )
    assert values["auc"] == "NaN"
    assert values["matrix"] == {"shape": [2, 2], "values": [1, 2, 3, 4]}
    assert values["names"] == {"shape": [2], "values": ["a", "b"]}
    assert values["remark"] == {"text": "fine"}
    assert "NoneType" in values["confusion"]["error"]
    assert values["bounded"]["value"] == 0.6
    assert values["bounded"]["lower_bound"] < 0.5 < values["bounded"]["upper_bound"]


def test_why_a_slice_has_no_metrics_is_kept(tmp_path: Path) -> None:
    directory = _evaluation(tmp_path, [(CASH, {"__ERROR__": "too few examples"})])
    assert _rows(directory, "slice", "metrics") == [
        ({"payment": "Cash"}, {"__ERROR__": {"error": "too few examples"}})
    ]


def test_plots_are_tables_by_columns(tmp_path: Path) -> None:
    from tensorflow_model_analysis.metrics import metric_types
    from tensorflow_model_analysis.proto import metrics_for_slice_pb2 as protos

    calibration = protos.CalibrationHistogramBuckets()
    bucket = calibration.buckets.add(upper_threshold_exclusive=0.5)
    bucket.num_weighted_examples.value = 3
    classes = protos.MultiClassConfusionMatrixAtThresholds()
    matrix = classes.matrices.add(threshold=0.5)
    matrix.entries.add(actual_class_id=1, predicted_class_id=2, num_weighted_examples=7)
    plots = {
        metric_types.PlotKey("calibration_plot"): calibration,
        metric_types.PlotKey("confusion_matrix_plot"): _confusion(),
        metric_types.PlotKey("multi_class"): classes,
    }
    directory = _evaluation(tmp_path, [((), {_key("auc"): 0.9})], [(CASH, plots)])
    document = metrics_document(directory)
    assert document is not None and document["plots_left_out"] == 0
    assert _listed("### metrics") == set(document)
    subject = _listed("Rows and plots")
    assert subject | _listed("A row of `metrics`") == set(document["metrics"][0])
    assert subject | _listed("A plot also") == set(document["plots"][0])
    assert {plot["kind"]: plot["columns"] for plot in document["plots"]} == {
        "calibration_histogram_buckets": {
            "lower_threshold_inclusive": [0.0],
            "upper_threshold_exclusive": [0.5],
            "num_weighted_examples": [3.0],
            "total_weighted_label": [0.0],
            "total_weighted_refined_prediction": [0.0],
        },
        "confusion_matrix_at_thresholds": {
            "threshold": [0.0, 0.5, 1.0],
            "true_positives": [2.0, 1.0, 0.0],
            "false_positives": [0.0, 0.0, 0.0],
            "true_negatives": [0.0, 1.0, 2.0],
            "false_negatives": [0.0, 0.0, 0.0],
        },
        "multi_class_confusion_matrix_at_thresholds": {
            "threshold": [0.5],
            "actual_class_id": [1],
            "predicted_class_id": [2],
            "num_weighted_examples": [7.0],
        },
    }
    assert {(plot["name"], *plot["slice"].values()) for plot in document["plots"]} == {
        ("", "Cash"),
        ("multi_class", "Cash"),
    }


def test_content_over_the_limit_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tensorflow_model_analysis.metrics import metric_types

    monkeypatch.setattr(module, "MAX_TABLE_ROWS", 5)
    monkeypatch.setattr(module, "MAX_METRIC_ROWS", 1)
    plot = {metric_types.PlotKey("confusion_matrix_plot"): _confusion()}
    metrics = {_key("few"): np.array([1, 2]), _key("many"): np.arange(4)}
    directory = _evaluation(
        tmp_path,
        [((), metrics), (CASH, {_key("auc"): 0.5})],
        [((), plot), (CASH, plot)],
    )
    document = metrics_document(directory)
    assert document is not None
    (row,) = document["metrics"]
    assert row["metrics"]["few"] == {"shape": [2], "values": [1, 2]}
    assert row["metrics"]["many"] == {"left_out": 4}
    assert document["metrics_left_out"] == 1
    assert [plot["slice"] for plot in document["plots"]] == [{}]
    assert document["plots_left_out"] == 1


def test_an_evaluation_without_tfma_files_has_no_document(tmp_path: Path) -> None:
    (tmp_path / "scores.csv").write_text("0.9")
    assert metrics_document(tmp_path) is None


def test_damage_is_named(tmp_path: Path) -> None:
    path = _evaluation(tmp_path, [((), {_key("auc"): 0.9})]) / (
        "metrics-00000-of-00001.tfrecord"
    )
    content = path.read_bytes()
    path.write_bytes(content[:-6])
    with pytest.raises(DataError, match="truncated"):
        metrics_document(tmp_path)
    tfrecord.write(path, [b"\xff\xff"])
    with pytest.raises(WorkspaceError, match="evaluation cannot be read") as failure:
        metrics_document(tmp_path)
    assert failure.value.where == str(path)
    path.write_bytes(b"")
    with pytest.raises(WorkspaceError, match="evaluation contains no metrics"):
        metrics_document(tmp_path)
    with pytest.raises(FileNotFoundError):
        metrics_document(tmp_path / "gone")


def test_the_document_of_an_evaluator(tmp_path: Path) -> None:
    uri = _evaluation(tmp_path / "7", [((), {_key("auc"): float("inf")})])
    artifact = {"id": 7, "type": "ModelEvaluation", "uri": str(uri), "properties": {}}
    (record,) = write_documents(
        DescribedNode("Evaluator", {"evaluation": [artifact]}), tmp_path
    )
    assert (record.kind, record.path) == ("metrics", "record/Evaluator.metrics.json")
    document = json.loads((tmp_path / record.path).read_text())
    (described,) = document["artifacts"]
    assert (described["output"], described["id"]) == ("evaluation", 7)
    assert described["metrics"][0]["metrics"] == {"auc": "Infinity"}
