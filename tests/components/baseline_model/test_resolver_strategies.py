"""The model whose weights a training starts from: served now, or trained last."""

from __future__ import annotations

import shutil

import pytest

from components.baseline_model.blessed_models import RETIRED
from serving.local_store import LocalModelStore

pytestmark = pytest.mark.tf


def test_the_served_model_or_the_one_trained_last_is_found(tmp_path):
    from tfx.types import standard_artifacts

    from components.baseline_model.component import TrainedModel

    serving, models = tmp_path / "serving", []
    for number in (1, 2, 3):
        model = standard_artifacts.Model()
        folder = tmp_path / "models" / str(number) / "Format-Serving"
        folder.mkdir(parents=True)
        (folder / "saved_model.pb").write_text(f"model {number}")
        model.uri, model.id = str(folder.parent), number
        model.mlmd_artifact.state = model.mlmd_artifact.LIVE
        if number < 3:
            store = LocalModelStore(serving)
            store.publish(folder, facts={"model_uri": model.uri})
        models.append(model)

    def found(models, served_in=None):
        strategy = TrainedModel(str(served_in) if served_in else None)
        result = strategy.resolve_artifacts(None, {"model": models})
        assert set(result) == {"model"}, "an empty input does not stop the node"
        return [model.id for model in result["model"]]

    assert found(models) == [3]
    assert found([]) == []
    models[2].set_string_custom_property(RETIRED, "bad labels")
    assert found(models) == [2], "a retired one is no start"
    models[1].set_string_custom_property(RETIRED, "bad labels, too")
    assert found(models, serving) == []
    for model in models[1:]:
        del model.mlmd_artifact.custom_properties[RETIRED]
    models[2].mlmd_artifact.state = models[2].mlmd_artifact.DELETED
    assert found(models, serving) == [2]
    shutil.rmtree(serving / "2")
    assert found(models, serving) == [1], "after a rollback"
    assert found(models[1:], serving) == [], "pushed from elsewhere"
    assert found(models, tmp_path / "nothing served") == []
    shutil.rmtree(models[1].uri)
    assert found(models) == [1], "neither deleted nor missing"
