"""Artifact types of our own: folders with a JSON file, for people and other nodes.

What they say in short, such as ``passed`` (1 or 0), are custom properties: the cloud
compiler refuses declared properties of types that are not TFX's
(kubeflow/v2/compiler_utils.py).
"""

from __future__ import annotations

from tfx.types import artifact


class DataVerdict(artifact.Artifact):
    """What the data gate decided: ``verdict.json``, ``verdict.txt``, ``passed``."""

    TYPE_NAME = "components.DataVerdict"


class ModelVerdict(artifact.Artifact):
    """What the model gate decided: ``verdict.json``, ``verdict.txt``, ``passed``."""

    TYPE_NAME = "components.ModelVerdict"


class Quarantine(artifact.Artifact):
    """Records that were not ingested: ``report.json``, ``quarantine.tfrecord.gz``.

    Custom properties: ``records`` ingested, and ``quarantined``, how many record errors
    there were.
    """

    TYPE_NAME = "components.Quarantine"
