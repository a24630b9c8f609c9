"""Writes a run that has every document: taxi's, with more features and slices."""

import json
from copy import deepcopy

from tests.kit import protos
from tests.kit.runs import a_check, a_gate
from tests.reports.conftest import TAXI

PNG = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNg"
    "AAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
SPLITS = ("train", "eval", "test")
CLASSES = ("no", "yes")
_AT = "2026-01-01T00:00:00+00:00"
_RUN_ID = "20260101T000000Z-aaaa"


def write_run(runs, *, features=12, slices=60, change=lambda value: value):
    """Writes ``run.json``, the documents and the logs of a run; returns its folder.

    Args:
      runs: where.
      features: the number of features of the data; every other one is text.
      slices: the number of slices of the evaluation.
      change: changes ``run.json``, and each document, before it is written.
    """
    found = json.loads(TAXI.read_text())
    run_dir = runs / _RUN_ID
    (run_dir / "documents").mkdir(parents=True)
    (run_dir / "logs").mkdir()
    line = str(change("a line of a log")).encode(errors="surrogatepass")
    (run_dir / "logs" / "Trainer.log").write_bytes(line)
    documents = {kind: x["content"] for kind, x in found["documents"].items()}
    made_by = {kind: x["node"] for kind, x in found["documents"].items()}
    references = []
    for kind, content in {
        **documents,
        **_documents(documents, features, slices),
    }.items():
        path = f"documents/1.{kind}.json"
        privacy = {"private": False, "sensitive": [], "label": "label"}
        changed = change(content)
        if kind == "schema":  # A proto has no unpaired surrogates, and small floats.
            for feature in changed["schema"]["feature"]:
                feature.pop("float_domain", None)
            text = json.dumps(changed, ensure_ascii=False)
            changed = json.loads(text.encode(errors="replace"))
        document = {**changed, "kind": kind, "privacy": privacy}
        (run_dir / path).write_text(json.dumps(document))
        node = made_by.get(kind, "TFRecordGen")
        references.append({"kind": kind, "node": node, "path": path})
    record = found["record"] | _record(found["record"])
    kept = {"schema_version": 1, "run_id": _RUN_ID, "documents": references}
    (run_dir / "run.json").write_text(json.dumps({**change(record), **kept}))
    return run_dir


def _record(taxi):
    miss = a_check(
        "feature 'feature 1'",
        slice="train",
        limit="in the domain",
        comparison=None,
        actual="other",
        result="FAIL",
        policy="validate.default: fail",
        kind="new_value",
        feature="feature 1",
        examples=("data-0, record 3",),
    )
    data = a_gate("data", miss, override="a good reason")
    model = a_gate("model", a_check("auc", baseline=0.75, actual=0.8, why="fine"))
    nodes = deepcopy(taxi["nodes"])
    nodes[-1] |= {"state": "failed", "reason": "a reason"}
    return {
        "pipeline": "generated",
        "command": "sluice run generated",
        "status": "failed",
        "exit_code": 1,
        "error": {
            "node": "Trainer",
            "message": "it failed",
            "log": "logs/Trainer.log",
            "log_tail": ["last line"],
        },
        "nodes": nodes,
        "gates": [json.loads(gate.to_json()) for gate in (data, model)],
        "pushes": [{"destination": "/serving", "state": "failed"}],
        "resume_command": "sluice resume generated",
        "tags": {"who": "me"},
        "notes": ["a note"],
    }


def _documents(taxi, features, slices):
    numbers = range(features)
    statistics = {name: protos.split(*map(_feature, numbers)) for name in SPLITS}
    drift = [
        {"feature": f"feature {i}", "distance": i / features, "limit": 0.5}
        | {"measure": "L-infinity"}
        for i in numbers
    ]
    named = {"name": "span 0", "accepted_at": _AT, "override": "by hand"}
    comparison = {"check": "drift", "split": "train", "against": "s", "features": drift}
    mistakes = deepcopy(taxi["mistakes"])
    mistakes["mistakes"] *= 5
    for number, item in enumerate(mistakes["mistakes"]):
        images = [{"feature": "image", **_image()}] if number % 2 else []
        mistakes["mistakes"][number] = {**item, "images": images}
    flipped = [{**item, "baseline": "yes"} for item in mistakes["mistakes"][:2]]
    examples = {"newly_wrong": flipped, "newly_right": flipped[:1]}
    flips = {"newly_wrong": 2, "newly_right": 1, "both_wrong": 3, "both_right": 9}
    mistakes["flips"] = {**flips, "examples": examples}
    return {
        "ingestion": _ingestion(taxi["ingestion"]),
        "samples": _samples(),
        "statistics": {"splits": statistics},
        "baseline_statistics": {
            "splits": {"train": statistics["train"]},
            "baseline": {"run_id": "20251231T000000Z-aaaa", "spans": [0], **named},
        },
        "distances": {"comparisons": [comparison]},
        "metrics": protos.evaluation(*_metrics(slices)),
        "mistakes": {**mistakes, "classes": list(CLASSES)},
        "residuals": _residuals(mistakes["mistakes"]),
        "trials": SEARCH,
    }


def _residuals(examples):
    """Returns a regression with two targets; half of its examples have images.

    Whole numbers: those of this document are finite, and are not changed to others.
    """
    target = {
        "mean": 1,
        "quantiles": [-2, -1, 0, 1, 2],
        "by_value": {"true": [1, 9], "low": [0, 7], "median": [1, 8], "high": [3, 9]},
    }
    found = {"true": [1, 2], "predicted": [2, 0]}
    return {
        **{"split": "eval", "examples": 6, "complete": False},
        "targets": [target] * 2,
        "largest": [{**item, **found} for item in examples],
    }


def _trial(number, rate, units, objective):
    is_done = objective is not None
    return {
        "number": number,
        "status": "completed" if is_done else "failed",
        "objective": objective,
        "epochs": 3 if is_done else None,
        "duration_s": 2.5 if is_done else None,
        "error": None if is_done else "the loss is <NaN>",
        "values": {"train.learning_rate": rate, "model_params.units": units},
    }


SEARCH = {
    "algorithm": "random",
    "objective": "val_auc",
    "direction": "max",
    "space": {
        "train.learning_rate": {"min": 0.001, "max": 0.1, "log": True},
        "model_params.units": [[4], [8, 4], [16]],
    },
    "trials": [
        _trial(2, 0.01, [8, 4], 0.75),
        _trial(1, 0.001, [4], 0.5),
        _trial(3, 0.1, [16], None),
    ],
}


def _ingestion(taxi):
    file = {"span": 1, "version": None, "size_bytes": 1000, "records": 100}
    error = {"number": 3, "offset": 70, "kind": "checksum", "reason": "it is wrong"}
    files = [
        {"path": f"/data/{name}-0", "split": name, "quarantined": 1, **file}
        for name in SPLITS
    ]
    bad = {"quarantined": 1, "lost_bytes": 10, "errors": {"checksum": 1}}
    first = {"first_errors": [{"path": "/data/train-0", **error}]}
    place = "/data/eval-0, record 7: equal to /data/train-0, record 1,003"
    leak = {"split": "eval", "other": "train", "records": 12, "examples": [place]}
    return {**taxi, "files": files, "equal": [leak], **bad, **first}


def _feature(number):
    name = f"feature {number}"
    counted = {"present": 100 - number % 40, "missing": number % 40}
    if number % 2 == 1:
        top = {f"value {i}": 20.0 - i for i in range(20)}
        return protos.text(name, top, avg_length=6.0, **counted)
    counts = [float((number * 7 + bucket * 13) % 30) for bucket in range(10)]
    edges = [float(edge) for edge in range(11)]
    stats = {"mean": 4.5 + number, "std_dev": 2.0, "median": 4.0, "max": 10.0}
    return protos.numeric(name, counts, edges, num_zeros="3", **stats, **counted)


def _metrics(slices):
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


def _image():
    where = {"split": "train", "file": "Split-train/data-0.gz", "record": 3}
    size = {"width": 1, "height": 1, "format": "PNG"}
    return {**where, **size, "class": "yes", "data": PNG}


def _samples():
    split = {"split": "train", "images": 9, "sizes": {"PNG 8 x 8": 9}}
    feature = {
        "name": "image",
        "splits": [{**split, "sizes_left_out": 0}],
        "gallery": [{"class": name, "images": [_image()] * 8} for name in CLASSES],
        "decoded": [{**_image(), "format": "fit"}] * len(CLASSES),
        "classes_left_out": 0,
    }
    return {"complete": False, "records": {"train": 9}, "features": [feature]}
