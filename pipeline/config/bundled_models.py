"""Names of the models that come with Sluice, and the import path of any model."""

from __future__ import annotations

REGISTRY = {
    "dense": "pipeline.training.models.dense:build_model",
    "cnn": "pipeline.training.models.cnn:build_model",
    "wide_deep": "pipeline.training.models.wide_deep:build_model",
}


def import_path(model: str) -> str:
    """Returns ``package.module:function`` for a name or such a path itself."""
    return REGISTRY.get(model, model)


def module_name(model: str) -> str:
    """Returns the module that a model's function lives in."""
    return import_path(model).partition(":")[0]
