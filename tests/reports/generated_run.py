"""Writes the record of a run that has every document, of any number of features."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sluice.record.parts import DocumentRecord, ErrorRecord, NodeRecord, PushRecord
from sluice.record.run_record import RunRecord
from sluice.record.verdict import Check, Verdict
from tests.kit import protos

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNg"
    "AAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
SPLITS = ("train", "eval", "test")
CLASSES = ("no", "yes")
NODES = {
    "TFRecordGen": (),
    "StatisticsGen": ("TFRecordGen",),
    "DataVerdict": ("StatisticsGen",),
    "DataGate": ("DataVerdict",),
    "Trainer": ("DataGate",),
    "Evaluator": ("Trainer",),
    "Pusher": ("Evaluator",),
}
MADE_BY = {
    "ingestion": "TFRecordGen",
    "samples": "TFRecordGen",
    "statistics": "StatisticsGen",
    "anomalies": "DataVerdict",
    "baseline_statistics": "DataVerdict",
    "distances": "DataVerdict",
    "schema": "DataVerdict",
    "epochs": "Trainer",
    "model": "Trainer",
    "metrics": "Evaluator",
    "mistakes": "Evaluator",
    "lineage": "Pusher",
}
_AT = "2026-01-01T00:{:02}:00+00:00"
_RUN_ID = "20260101T000000Z-aaaa"

Change = Callable[[Any], Any]


def write_run(
    runs: Path, *, features: int = 12, slices: int = 60, change: Change | None = None
) -> Path:
    """Writes ``run.json``, the documents and the logs of a run; returns its folder.

    Args:
      runs: where.
      features: the number of features of the data; every other one is text.
      slices: the number of slices of the evaluation.
      change: changes ``run.json``, and each document, before it is written.
    """
    change = change or (lambda value: value)
    run_dir = runs / _RUN_ID
    (run_dir / "documents").mkdir(parents=True)
    (run_dir / "logs").mkdir()
    line = str(change("a line of a log")).encode(errors="surrogatepass")
    (run_dir / "logs" / "Trainer.log").write_bytes(line)
    record = _record()
    for kind, content in _documents(features, slices).items():
        node = MADE_BY[kind]
        path = f"documents/1.{kind}.json"
        privacy = {"private": False, "sensitive": [], "label": "label"}
        document = {"kind": kind, "privacy": privacy, **change(content)}
        (run_dir / path).write_text(json.dumps(document))
        record.documents.append(DocumentRecord(kind, node, path))
    values = record.to_dict()
    kept = ("schema_version", "run_id", "documents")
    changed = {**change(values), **{name: values[name] for name in kept}}
    (run_dir / "run.json").write_text(json.dumps(changed))
    return run_dir


def _record() -> RunRecord:
    check = Check(
        "auc", "overall", ">= 0.7", baseline=0.75, actual=0.8, passed=True, why="fine"
    )
    miss = Check(
        "feature 'feature 1'",
        "train",
        "in the domain",
        baseline=None,
        actual="other",
        passed=False,
        severity="fail",
        kind="new_value",
        feature="feature 1",
        examples=("data-0, record 3",),
    )
    return RunRecord(
        run_id=_RUN_ID,
        pipeline="generated",
        started_at=_AT.format(0),
        ended_at=_AT.format(9),
        command="sluice run generated",
        status="failed",
        exit_code=1,
        error=ErrorRecord("Trainer", "it failed", "logs/Trainer.log", ["last line"]),
        nodes=[
            NodeRecord(
                name,
                name,
                "failed" if name == "Pusher" else "ran",
                30.0,
                reason="a reason",
                upstream=list(upstream),
                started_at=_AT.format(minute),
                attempts=1,
                peak_memory_bytes=500_000_000,
            )
            for minute, (name, upstream) in enumerate(NODES.items())
        ],
        gates=[
            Verdict("data", (miss,), "a good reason").to_dict(),
            Verdict("model", (check,)).to_dict(),
        ],
        pushes=[PushRecord("/serving", "failed")],
        resume_command="sluice resume generated",
        config={"name": "generated", "model": "dense", "train": {"epochs": 3}},
        digests={"code": "sha256:1", "data": "sha256:2"},
        packages={"tfx": "1.16.0"},
        tags={"who": "me"},
        notes=["a note"],
    )


def _documents(features: int, slices: int) -> dict[str, dict[str, Any]]:
    numbers = range(features)
    statistics = {name: protos.split(*map(_feature, numbers)) for name in SPLITS}
    distance = {"measure": "L-infinity", "limit": 0.5}
    drift = [
        {"feature": f"feature {i}", "distance": i / features, **distance}
        for i in numbers
    ]
    reason = {"short_description": "unexpected values", "description": "not in it"}
    anomalies = {"feature 1": {"severity": "ERROR", "reason": [reason]}}
    named = {"name": "span 0", "accepted_at": _AT.format(0), "override": "by hand"}
    return {
        "ingestion": _ingestion(),
        "samples": _samples(),
        "statistics": {"splits": statistics},
        "baseline_statistics": {
            "splits": {"train": statistics["train"]},
            "baseline": {"run_id": "20251231T000000Z-aaaa", "spans": [0], **named},
        },
        "distances": {
            "comparisons": [
                {"check": "drift", "split": "train", "against": "s", "features": drift}
            ]
        },
        "schema": {
            "schema": {
                "feature": [_schema_feature(number) for number in numbers],
                "string_domain": [{"name": "known", "value": ["value 1"]}],
            }
        },
        "anomalies": {"splits": {"train": {"anomaly_info": anomalies}}},
        "epochs": {
            "epochs": [1, 2, 3],
            "metrics": {"loss": [3.0, 2.0, 1.0], "val_loss": [3.0, 2.5, 2.6]},
            "training": _training(),
        },
        "model": _model(),
        "metrics": protos.evaluation(*_metrics(slices)),
        "mistakes": _mistakes(),
        "lineage": _lineage(),
    }


def _ingestion() -> dict[str, Any]:
    file = {"span": 1, "version": None, "size_bytes": 1000, "records": 100}
    error = {"record": 3, "offset": 70, "kind": "checksum", "reason": "it is wrong"}
    return {
        "files": [
            {"path": f"/data/{name}-0", "split": name, "quarantined": 1, **file}
            for name in SPLITS
        ],
        "files_left_out": 0,
        "splits": {name: {"records": 100, "shards": 1} for name in SPLITS},
        "records": 300,
        "quarantined": 1,
        "lost_bytes": 10,
        "errors": {"checksum": 1},
        "first_errors": [{"path": "/data/train-0", **error}],
        "problems": [],
        "quarantine_cut": False,
    }


def _feature(number: int) -> dict[str, Any]:
    name = f"feature {number}"
    counted: dict[str, Any] = {"present": 100 - number % 40, "missing": number % 40}
    if number % 2 == 1:
        top = {f"value {i}": 20.0 - i for i in range(20)}
        return protos.text(name, top, avg_length=6.0, **counted)
    counts = [float((number * 7 + bucket * 13) % 30) for bucket in range(10)]
    edges = [float(edge) for edge in range(11)]
    stats: dict[str, Any] = {
        "mean": 4.5 + number,
        "std_dev": 2.0,
        "median": 4.0,
        "max": 10.0,
    }
    return protos.numeric(name, counts, edges, num_zeros="3", **stats, **counted)


def _schema_feature(number: int) -> dict[str, Any]:
    return {
        "name": f"feature {number}",
        "type": "BYTES",
        "shape": {"dim": [{"size": "1"}]},
        "presence": {"min_fraction": 0.5, "min_count": "1"},
        "domain": "known",
        "not_in_environment": ["SERVING"],
        "drift_comparator": {"infinity_norm": {"threshold": 0.5}},
    }


def _metrics(slices: int) -> Iterable[dict[str, Any]]:
    no = [100 - bucket for bucket in range(100)]
    for number in range(-1, slices):
        where = {"where": f"slice-{number}"} if number >= 0 else {}
        for model, better in (("candidate", 0.02), ("baseline", 0.0)):
            auc = 0.5 + (number % 40) / 100 + better
            found = {"auc": (auc, auc - 0.1, auc + 0.1), "loss": 1.0 - auc}
            found |= {"example_count": 100.0, "examples_per_class": [60, 40]}
            if number < 0:
                found["prediction_histogram"] = no + no[::-1]
            yield protos.slice_metrics(found, model, **where)


def _image() -> dict[str, Any]:
    where = {"split": "train", "file": "Split-train/data-0.gz", "record": 3}
    size = {"width": 1, "height": 1, "format": "PNG"}
    return {**where, **size, "class": "yes", "data": PNG}


def _samples() -> dict[str, Any]:
    group = {"images": [_image(), _image()], "images_left_out": 1}
    counts = dict.fromkeys(("groups", "images", "across_splits"), 1)
    split = {"split": "train", "images": 9, "sizes": {"PNG 8 x 8": 9}}
    split["sizes_left_out"] = 0
    feature = {
        "name": "image",
        "splits": [split],
        "gallery": [{"class": name, "images": [_image()] * 8} for name in CLASSES],
        "classes_left_out": 0,
        "equal": {**counts, "examples": [group]},
    }
    return {"complete": False, "records": {"train": 9}, "features": [feature]}


def _mistakes() -> dict[str, Any]:
    row = {"true": "no", "predicted": "yes", "probability": 0.9}
    row |= {"true_probability": 0.1, "split": "test", "file": "Split-test/data-0.gz"}
    values = {"feature 0": [3.5], "feature 1": ["value 1"]}
    return {
        "split": "test",
        "classes": list(CLASSES),
        "examples": 100,
        "complete": True,
        "wrong": 24,
        "mistakes": [
            {
                **row,
                "record": number,
                "images": [{"feature": "image", **_image()}] if number % 2 else [],
                "values": values,
            }
            for number in range(24)
        ],
    }


def _training() -> dict[str, Any]:
    return {
        "strategy": "mirrored: 2 replicas on GPUs, since there are two",
        "replicas": 2,
        "batch_size": 32,
        "steps_per_execution": 1,
        "precision": "float32",
        "train_examples": 80,
        "eval_examples": 20,
        "trainable_parameters": 420,
        "non_trainable_parameters": 0,
        "time_to_first_step_s": 1.5,
        "device_memory_peak_bytes": 2_000_000,
        "chosen_epoch": 2,
        "epochs": [
            {
                "epoch": epoch,
                "duration_s": 2.5,
                "examples_per_second": 100.5 * epoch,
                "input_bound": 0.25,
            }
            for epoch in (1, 2, 3)
        ],
        "layers": [
            {
                "name": f"dense_{number}",
                "class": "Dense",
                "output_shape": [None, 3],
                "parameters": 6,
                "trainable_parameters": 6,
            }
            for number in range(70)
        ],
    }


def _lineage() -> dict[str, Any]:
    names = ("TFRecordGen.examples", "Trainer.model", "Pusher.pushed_model")
    version = {"version": 3, "uri": "/serving/3", "digest": "sha256:12"}
    when = {"published_at": _AT.format(2), "run_id": "20251231T000000Z-aaaa"}
    return {
        "origin": {"data": [{"path": "/data/0", "span": "1", "fingerprint": "ab"}]},
        "artifacts": [
            {
                "id": number,
                "name": name,
                "uri": f"/artifacts/{name}",
                "producer": number,
                "created_at": _AT.format(1),
            }
            for number, name in enumerate(names)
        ],
        "executions": [
            {"id": number, "run_id": f"2025123{number}T000000Z-aaaa"}
            for number in range(len(names))
        ],
        "served": [{**version, **when}],
        "complete": True,
    }


def _model() -> dict[str, Any]:
    tensors = [{"name": "examples", "dtype": "string", "shape": [-1]}]
    signature = {"name": "serving_default", "inputs": tensors, "outputs": tensors}
    return {
        "size_bytes": 3_000_000,
        "files": [{"path": "saved_model.pb", "size_bytes": 2_000_000}],
        "tensorflow_version": "2.16.2",
        "signatures": [signature],
        "parameters": 420,
        "trainable_parameters": 420,
    }
