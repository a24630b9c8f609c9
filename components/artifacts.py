"""Artifact types of our own: a verdict is a folder with ``verdict.json`` in it.

``passed`` (1 or 0) is a custom property: the cloud compiler refuses declared
properties of types that are not TFX's (kubeflow/v2/compiler_utils.py).
"""

from __future__ import annotations

from tfx.types import artifact


class DataVerdict(artifact.Artifact):
    """What the data gate decided: ``verdict.json``, ``verdict.txt``, ``passed``."""

    TYPE_NAME = "components.DataVerdict"


class ModelVerdict(artifact.Artifact):
    """What the model gate decided: ``verdict.json``, ``verdict.txt``, ``passed``."""

    TYPE_NAME = "components.ModelVerdict"
