"""The model that is served now, or trained last, among the artifacts of a pipeline."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from serving.local_store import LocalModelStore

pytestmark = pytest.mark.tf


@pytest.fixture
def models(tmp_path: Path) -> list[Any]:
    """Three Model artifacts, oldest first; the first two have been pushed."""
    from tfx.types import standard_artifacts

    found = []
    for number in (1, 2, 3):
        folder = tmp_path / "models" / str(number) / "Format-Serving"
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_text(f"model {number}")
        model = standard_artifacts.Model()
        model.uri, model.id = str(folder.parent), number
        model.mlmd_artifact.state = model.mlmd_artifact.LIVE
        if number < 3:
            LocalModelStore(tmp_path / "serving").publish(
                folder, facts={"model_uri": model.uri}
            )
        found.append(model)
    return found


def _found(models: list[Any], served_in: Path | None = None) -> list[int]:
    from components.baseline_model.trained_model import TrainedModel

    strategy = TrainedModel(str(served_in) if served_in else None)
    result = strategy.resolve_artifacts(None, {"model": models})
    assert set(result) == {"model"}, "an empty input does not stop the node"
    return [model.id for model in result["model"]]


def test_the_latest_is_the_one_trained_last(models, tmp_path):
    assert _found(models) == [3]
    assert _found([]) == []
    models[2].mlmd_artifact.state = models[2].mlmd_artifact.DELETED
    shutil.rmtree(models[1].uri)
    assert _found(models) == [1], "neither deleted nor missing"


def test_the_served_one_is_the_source_of_the_newest_version(models, tmp_path):
    serving = tmp_path / "serving"
    assert _found(models, serving) == [2]
    shutil.rmtree(serving / "2")
    assert _found(models, serving) == [1], "after a rollback"
    assert _found(models[1:], serving) == [], "pushed from elsewhere"
    assert _found(models, tmp_path / "nothing served") == []
