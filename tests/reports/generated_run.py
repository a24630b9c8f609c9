"""Writes the record of a run that has every document, of any number of features."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from sluice.record.run_record import (
    DocumentRecord,
    ErrorRecord,
    NodeRecord,
    PushRecord,
    RunRecord,
)
from sluice.record.verdict import Check, Verdict

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
    (run_dir / "record").mkdir(parents=True)
    (run_dir / "logs").mkdir()
    line = str(change("a line of a log")).encode(errors="surrogatepass")
    (run_dir / "logs" / "Trainer.log").write_bytes(line)
    record = _record()
    for kind, content in _documents(features, slices).items():
        node = MADE_BY[kind]
        path = f"record/{node}.{kind}.json"
        artifact = {"output": kind, "id": 1, "uri": f"/artifacts/{kind}", **content}
        document = {
            "schema_version": 1,
            "kind": kind,
            "node": node,
            "made_from": "digest",
            "artifacts": [change(artifact)],
            "artifacts_left_out": 0,
        }
        (run_dir / path).write_text(json.dumps(document))
        record.documents.append(DocumentRecord(kind, node, path, "digest"))
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
    statistics = {"splits": [_statistics(name, features) for name in SPLITS]}
    return {
        "ingestion": {
            "files": [
                {
                    "path": f"/data/{name}-0",
                    "span": 1,
                    "version": None,
                    "split": name,
                    "size_bytes": 1000,
                    "sha256": "ab",
                    "compression": "gzip",
                    "records": 100,
                    "quarantined": 1,
                    "lost_bytes": 10,
                    "content_bytes": 1000,
                    "content_crc32c": 1,
                }
                for name in SPLITS
            ],
            "files_left_out": 0,
            "splits": {name: {"records": 100, "shards": 1} for name in SPLITS},
            "records": 300,
            "quarantined": 1,
            "lost_bytes": 10,
            "bytes": 3000,
            "corrupt_fraction": 0.01,
            "errors": {"checksum": 1},
            "first_errors": [
                {
                    "path": "/data/train-0",
                    "record": 3,
                    "offset": 70,
                    "kind": "checksum",
                    "reason": "the checksum is wrong",
                }
            ],
            "problems": [],
            "spans": [1],
            "skipped_spans": [{"span": 2, "name": "span-2", "why": "no files"}],
            "quarantine_cut": False,
            "max_record_bytes": 1000,
        },
        "samples": _samples(),
        "statistics": statistics,
        "baseline_statistics": {
            "splits": statistics["splits"][:1],
            "baseline": {
                "name": "span 0",
                "accepted_at": _AT.format(0),
                "run_id": "20251231T000000Z-aaaa",
                "spans": [0],
                "override": "by hand",
            },
        },
        "distances": {
            "comparisons": [
                {
                    "check": "drift",
                    "split": "train",
                    "against": "span 0",
                    "features": [
                        {
                            "feature": f"feature {number}",
                            "measure": "L-infinity",
                            "distance": number / features,
                            "limit": 0.5,
                        }
                        for number in range(features)
                    ],
                    "features_left_out": 0,
                }
            ]
        },
        "schema": {
            "features": [_schema_feature(number) for number in range(features)],
            "features_left_out": 0,
            "default_environments": ["TRAINING"],
        },
        "anomalies": {
            "splits": [
                {
                    "split": "train",
                    "anomalies": [
                        {
                            "feature": "feature 1",
                            "kind": "ENUM_TYPE_UNEXPECTED_STRING_VALUES",
                            "severity": "error",
                            "short": "unexpected values",
                            "long": "values that are not in the domain",
                        }
                    ],
                    "anomalies_left_out": 0,
                }
            ],
            "suggestions": [
                {
                    "feature": "feature 1",
                    "kind": "new_value",
                    "text": "add a value",
                    "refusal": "it cannot be accepted",
                }
            ],
            "suggestions_left_out": 0,
        },
        "epochs": {
            "source": "history.json",
            "epochs": [1, 2, 3],
            "epochs_left_out": 0,
            "metrics": {"loss": [3.0, 2.0, 1.0], "val_loss": [3.0, 2.5, 2.6]},
            "training": _training(),
        },
        "model": _model(),
        "metrics": {
            "metrics": [*_metrics(slices)],
            "metrics_left_out": 0,
            "plots": [],
            "plots_left_out": 0,
        },
        "mistakes": _mistakes(),
        "lineage": _lineage(),
    }


def _statistics(split: str, features: int) -> dict[str, Any]:
    return {
        "split": split,
        "examples": 100,
        "slices_left_out": 0,
        "features": [_feature(number) for number in range(features)],
        "features_left_out": 0,
    }


def _feature(number: int) -> dict[str, Any]:
    spread = [float((number * 7 + bucket * 13) % 30) for bucket in range(10)]
    edges = [float(bucket) for bucket in range(11)]
    numeric = {
        "zeros": 3,
        "nan": 0,
        "mean": 4.5 + number,
        "std_dev": 2.0,
        "min": 0.0,
        "median": 4.0,
        "max": 10.0,
        "histogram": {"edges": edges, "counts": spread},
        "quantiles": {"edges": edges, "counts": [10.0] * 10},
    }
    text = {
        "unique": 20,
        "avg_length": 6.0,
        "invalid_utf8": 0,
        "top_values": [{"value": f"value {i}", "count": 20 - i} for i in range(20)],
        "rank_histogram": None,
    }
    is_text = number % 2 == 1
    return {
        "name": f"feature {number}",
        "type": "STRING" if is_text else "FLOAT",
        "present": 100 - number % 40,
        "missing": number % 40,
        "min_values": 1,
        "max_values": 1,
        "sensitive": False,
        "numeric": None if is_text else numeric,
        "string": text if is_text else None,
        "bytes": None,
    }


def _schema_feature(number: int) -> dict[str, Any]:
    domain = {"kind": "string", "name": "known", "values": ["value 1"]}
    comparator = {"check": "drift", "measure": "infinity_norm", "threshold": 0.5}
    return {
        "name": f"feature {number}",
        "type": "BYTES",
        "validated": True,
        "shape": [1],
        "min_values": 1,
        "max_values": 1,
        "min_fraction": 0.5,
        "min_count": 1,
        "domain": {
            **domain,
            "min": None,
            "max": None,
            "categorical": None,
            "values_left_out": 0,
        },
        "sensitive": False,
        "environments": {"only_in": [], "not_in": ["SERVING"]},
        "comparators": [comparator],
    }


def _metrics(slices: int) -> Iterable[dict[str, Any]]:
    for model, better in (("candidate", 0.02), ("baseline", 0.0)):
        for number in range(-1, slices):
            auc = 0.5 + (number % 40) / 100 + better
            yield {
                "slice": {} if number < 0 else {"where": f"slice-{number}"},
                "compared_with": None,
                "model": model,
                "output": "",
                "sub_key": {},
                "example_weighted": False,
                "aggregation": None,
                "change": False,
                "metrics": {
                    "auc": {
                        "value": auc,
                        "lower_bound": auc - 0.1,
                        "upper_bound": auc + 0.1,
                    },
                    "loss": 1.0 - auc,
                    "example_count": 100.0,
                    "examples_per_class": {"shape": [2], "values": [60, 40]},
                    **(_histogram() if number < 0 else {}),
                },
            }


def _histogram() -> dict[str, Any]:
    no = [100 - bucket for bucket in range(100)]
    return {"prediction_histogram": {"shape": [2, 100], "values": no + no[::-1]}}


def _image() -> dict[str, Any]:
    where = {"split": "train", "file": "Split-train/data-0.gz", "record": 3}
    size = {"width": 1, "height": 1, "format": "png"}
    return {**where, **size, "class": "yes", "data": PNG}


def _samples() -> dict[str, Any]:
    group = {"images": [_image(), _image()], "images_left_out": 1}
    counts = ("groups", "images", "across_splits", "across_classes")
    found = {"compared": 9, **dict.fromkeys(counts, 1), "examples": [group]}
    brightness = {"edges": [0, 128, 255], "counts": [3, 6]}
    split = {
        "split": "train",
        "images": 9,
        "undecodable": 1,
        "formats": {"png": 9},
        "channels": {"1": 9},
        "sizes": [{"width": 8, "height": 8, "count": 9}],
        "sizes_left_out": 0,
        "bytes": {"min": 1, "median": 140, "max": 150},
        "brightness": brightness,
    }
    feature = {
        "name": "image",
        "sensitive": False,
        "splits": [split],
        "gallery": [{"class": name, "images": [_image()] * 8} for name in CLASSES],
        "classes_left_out": 0,
        "duplicates": {"exact": found, "near": found},
    }
    limits = {
        "records": 9,
        "hashed_records": 9,
        "seconds": 1.0,
        "images_per_class": 8,
        "classes": 20,
    }
    splits = [{"split": "train", "records": 9, "complete": True, "decoded": 9}]
    private = {"private": False, "limits": limits}
    return {**private, "splits": splits, "features": [feature]}


def _mistakes() -> dict[str, Any]:
    row = {
        "file": "Split-test/data-0.gz",
        "true": "no",
        "predicted": "yes",
        "probability": 0.9,
        "true_probability": 0.1,
        "values_left_out": 0,
    }
    values = {"feature 0": 3.5, "feature 1": "value 1"}
    return {
        "private": False,
        "limits": {"examples": 5000, "seconds": 1.0, "mistakes": 24},
        "split": "test",
        "label": "label",
        "signature": "serving_default",
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
        "withheld": ["user"],
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
    }


def _lineage() -> dict[str, Any]:
    made = {"state": "LIVE", "created_at": _AT.format(1), "properties": {"span": "1"}}
    names = ("TFRecordGen.examples", "Trainer.model", "Pusher.pushed_model")
    artifacts = [
        {
            "id": number,
            "name": name,
            "type": "Examples",
            "uri": f"/artifacts/{name}",
            "producer": number,
            **made,
        }
        for number, name in enumerate(names)
    ]
    read = {"path": "/data/train-0", "span": "1", "version": None, "fingerprint": "ab"}
    code = {"pipeline.training.run_fn": "sha256:1"}
    return {
        "artifact": artifacts[-1],
        "origin": {
            "run_id": _RUN_ID,
            "data": [read],
            "schemas": [{"name": "schema", "file": "schema.pbtxt", "digest": "ab"}],
            "code": {"Trainer": code},
            "packages": {"tfx": "1.16.0"},
            "run_ids": [_RUN_ID],
        },
        "artifacts": artifacts,
        "executions": [
            {
                "id": number,
                "node": name.partition(".")[0],
                "kind": name.partition(".")[0],
                "run_id": f"2025123{number}T000000Z-aaaa",
                "state": "COMPLETE",
                "started_at": _AT.format(0),
                "ended_at": _AT.format(1),
                "code": code,
                "packages": {"tfx": "1.16.0"},
                "properties": {"custom_config": "{}"},
                "inputs": {},
                "outputs": {},
            }
            for number, name in enumerate(names)
        ],
        "served": [
            {
                "version": 3,
                "uri": "/serving/3",
                "digest": "sha256:12",
                "published_at": _AT.format(2),
                "run_id": "20251231T000000Z-aaaa",
            }
        ],
        "complete": True,
    }


def _model() -> dict[str, Any]:
    tensors = [{"name": "examples", "dtype": "string", "shape": [None]}]
    return {
        "size_bytes": 3_000_000,
        "files": [{"path": "saved_model.pb", "size_bytes": 2_000_000}],
        "files_left_out": 0,
        "model_dir": "Format-Serving",
        "tensorflow_version": "2.16.2",
        "signatures": [
            {
                "name": "serving_default",
                "inputs": tensors,
                "outputs": tensors,
                "example_request": {"instances": [{"feature 1": "value 1"}]},
            }
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
        "layers_left_out": 0,
        "variables": [],
        "variables_left_out": 0,
        "parameters": 420,
        "trainable_parameters": 420,
    }
