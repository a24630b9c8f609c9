"""Artifact types of our own: a verdict is a folder with ``verdict.json`` in it."""

from __future__ import annotations

from tfx.types import artifact

_PASSED = {"passed": artifact.Property(type=artifact.PropertyType.INT)}


class DataVerdict(artifact.Artifact):
    """What the data gate decided: ``verdict.json``, ``verdict.txt``, ``passed``."""

    TYPE_NAME = "components.DataVerdict"
    PROPERTIES = _PASSED


class ModelVerdict(artifact.Artifact):
    """What the model gate decided: ``verdict.json``, ``verdict.txt``, ``passed``."""

    TYPE_NAME = "components.ModelVerdict"
    PROPERTIES = _PASSED
