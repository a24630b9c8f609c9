"""Models that are damaged after ModelVerdict has blessed them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from serving.local_store import LocalModelStore

pytestmark = pytest.mark.fault

EPOCHS = "train.epochs=1"
CHANGE = (
    "evaluate.thresholds="
    "[{metric: accuracy, change: {direction: higher_is_better, absolute: -1.0}}]"
)


def _rows(outcome: Any) -> dict[str, dict[str, Any]]:
    (gate,) = [gate for gate in outcome.document["gates"] if gate["gate"] == "model"]
    return {row["check"]: row for row in gate["rows"]}


def _damage(place: Any) -> Path:
    """Truncates the variables of the newest model that a run has trained."""
    models = (place.workspace.artifacts / "Trainer" / "model").iterdir()
    model = max(models, key=lambda path: int(path.name))
    (data,) = model.glob("Format-Serving/variables/variables.data*")
    data.write_bytes(data.read_bytes()[:100])
    return model


def _doctor(place: Any) -> dict[str, Any]:
    checks = place.here("doctor", "digits", "--json").document["checks"]
    return next(check for check in checks if check["check"] == "baselines")


def test_a_damaged_model_is_neither_pushed_nor_the_baseline(served: Any) -> None:
    """It had been pushed with exit code 0; as the baseline it had failed every run."""
    serving = served.workspace.serving
    model = _damage(served)
    (serving / "1").rename(serving.parent / "aside")
    pushed = served.here("run", "digits", "--only", "Pusher", "--force", "Pusher")
    assert pushed.code == 5, pushed.out
    assert str(model) in pushed.out
    assert LocalModelStore(serving).versions() == []
    assert served.here("resume", "digits").code == 5

    # Its bytes are served: they are restored, and nothing is left to do.
    (serving.parent / "aside").rename(serving / "1")
    found = _doctor(served)
    assert found["state"] == "warning"
    assert str(serving / "1") in found["hint"]
    newer = served.here("run", "digits", "--set", EPOCHS, "--set", CHANGE, "--json")
    assert newer.code == 0, newer.err
    rows = _rows(newer)
    assert rows["accuracy change"]["baseline"] is not None
    assert rows["baseline"]["baseline"].startswith("version 1 (artifact ")
    assert "restored from" in rows["baseline"]["why"]
    assert _doctor(served)["state"] == "ok"

    # The same model again, under another threshold: it is the latest blessed one.
    itself = served.here(
        "run",
        "digits",
        "--set",
        EPOCHS,
        "--set",
        CHANGE.replace("-1.0", "-0.9"),
        "--json",
    )
    assert itself.code == 0, itself.err
    why = _rows(itself)["accuracy change"]["why"]
    assert why == "not compared: this model is the latest blessed one itself"

    # Neither an older nor a served copy: the gate holds until a person decides.
    _damage(served)
    for version in LocalModelStore(serving).versions():
        (Path(version.uri) / "saved_model.pb").write_bytes(b"garbage")
    models = served.workspace.artifacts / "Trainer" / "model"
    for path in models.glob("*/Format-Serving/saved_model.pb"):
        path.unlink()
    lost = served.here("run", "digits", "--set", CHANGE, "--json")
    assert lost.code == 4, lost.err
    assert "the baseline is lost" in _rows(lost)["accuracy change"]["why"]
    assert _doctor(served)["state"] == "problem"
    arguments = ("retire", "digits", "--damaged", "--reason", "disk failure", "--json")
    retired = served.here("models", *arguments)
    assert len(json.loads(retired.out)["retired"]) == 2
    first = served.here("run", "digits", "--set", CHANGE, "--json")
    assert first.code == 0, first.err
    assert "are retired" in _rows(first)["accuracy change"]["why"]
