"""Parts of a training by short arguments: features, settings and files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pipeline.config.features import FeatureSet
from pipeline.config.train import Train


def feature_set(
    features: Mapping[str, str | Mapping[str, Any]],
    classes: Sequence[Any] = (0, 1),
    *,
    label: str = "y",
    sample_weight: str | None = None,
) -> FeatureSet:
    """Returns features, each by its kind or by all of its keys, and the label."""
    specs = {
        name: {"kind": spec} if isinstance(spec, str) else spec
        for name, spec in features.items()
    }
    positive = classes[1] if len(classes) == 2 else None
    return FeatureSet.model_validate(
        {
            "features": specs,
            "label": {"feature": label, "classes": list(classes), "positive": positive},
            "sample_weight": sample_weight,
        }
    )


def settings(**given: Any) -> Train:
    """Returns the section ``train`` of a config."""
    return Train.model_validate(given)


def files_in(folder: Path | str) -> dict[Any, list[str]]:
    """Returns the patterns of both splits' files in a folder."""
    return {"train": [f"{folder}/train*"], "eval": [f"{folder}/eval*"]}


def fn_args(
    train: Mapping[str, Any], features: FeatureSet, model: str, data: str, output: str
) -> Any:
    """Returns what TFX gives to ``run_fn``.

    Args:
      train: the section of the config.
      features: the features and the label.
      model: import path of the function that builds it.
      data: folder of the examples.
      output: folder for the model's run and the served model.
    """
    return SimpleNamespace(
        custom_config={
            "train": settings(**train).model_dump(),
            "feature_set": features.model_dump(),
            "model": model,
            "model_params": {},
            "own_preprocessing": False,
        },
        transform_graph_path="",
        base_model=None,
        hyperparameters=None,
        train_files=[f"{data}/train*"],
        eval_files=[f"{data}/eval*"],
        model_run_dir=f"{output}/run",
        serving_model_dir=f"{output}/model",
    )
