"""Custom artifact types: folders with a JSON file.

What they say in short, such as ``passed`` (1 or 0), are custom properties: the cloud
compiler refuses declared properties of types that are not TFX's
(kubeflow/v2/compiler_utils.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, TypeAlias

from tfx.types import artifact, artifact_utils

from sluice.mlmd_items import newest_first
from sluice.record.verdict import Verdict

# Inputs or outputs of an executor, by key.
Artifacts: TypeAlias = dict[str, list[Any]]


class DataVerdict(artifact.Artifact):
    """What the data gate decided: ``verdict.json``, ``passed``.

    ``distances.json`` has the distances of drift and skew.
    """

    TYPE_NAME = "components.DataVerdict"


class ModelVerdict(artifact.Artifact):
    """What the model gate decided: ``verdict.json``, ``passed``."""

    TYPE_NAME = "components.ModelVerdict"


class Exports(artifact.Artifact):
    """What exports predict: ``verdict.json``, ``passed``."""

    TYPE_NAME = "components.Exports"


class ServingCheck(artifact.Artifact):
    """What the serving check found: ``verdict.json``, ``passed``."""

    TYPE_NAME = "components.ServingCheck"


class RetrainVerdict(artifact.Artifact):
    """Whether there is a reason to train: ``verdict.json``, ``retrain``."""

    TYPE_NAME = "components.RetrainVerdict"


class Quarantine(artifact.Artifact):
    """Records that were not ingested: ``report.json``, ``quarantine.tfrecord.gz``.

    Custom properties: ``records`` ingested, and ``quarantined``, how many record errors
    there were.
    """

    TYPE_NAME = "components.Quarantine"


# Custom properties of a model that ``LatestBlessedModel`` publishes: that it stands for
# none, names and reasons of newer ones, and URIs of older ones, in JSON.
ABSENT, SKIPPED, OLDER = "sluice_absent", "sluice_skipped", "sluice_older"


def without_absent(inputs: Artifacts) -> Artifacts:
    """Returns input artifacts by key without those that stand for none."""
    return {
        key: [one for one in items if not one.has_custom_property(ABSENT)]
        for key, items in inputs.items()
    }


def baseline_and_older(
    models: Iterable[Any], candidate: str
) -> tuple[list[Any], list[str]]:
    """Returns the baseline, if there is one, and the URIs of older models.

    Args:
      models: the input ``baseline_model``.
      candidate: URI of the candidate; if it is the latest, there is no baseline.
    """
    # A model that was blessed before is its own baseline on the next run.
    newest, *others = newest_first(models) or [None]
    if newest is None or newest.uri == candidate:
        return [], []
    older = [item.uri for item in others]
    older += json.loads(newest.get_string_custom_property(OLDER) or "[]")
    return [newest], older


def one_of_each(items: Artifacts) -> dict[str, Any]:
    """Returns the artifact of each key that has one.

    Raises:
      ValueError: a key has several.
    """
    return {
        key: artifact_utils.get_single_instance(found)
        for key, found in items.items()
        if found
    }


def publish_verdict(verdict: Verdict, artifact: Any) -> None:
    """Writes ``verdict.json`` below ``artifact.uri`` and sets its property ``passed``.

    Args:
      verdict: of a gate.
      artifact: its folder is local or an address such as ``gs://bucket/verdict``.
    """
    verdict.save(artifact.uri)
    artifact.set_int_custom_property("passed", int(verdict.passed))


def run_id_of(context: Any) -> str:
    """Returns the run's id; on Vertex AI the job's; "" where it is not known.

    There TFX's entry point gives no id to the context, only a folder
    ``<root>/<project>/<job>/<task>/.temp/<unique id>/``.

    Args:
      context: of a TFX executor; None outside of TFX.
    """
    if context is None:
        return ""
    if context.pipeline_run_id:
        return context.pipeline_run_id
    try:
        *_, job, _, temporary, _ = context.get_tmp_path().rstrip("/").split("/")
    except (RuntimeError, ValueError):  # It has no folder, or another one.
        return ""
    return job if temporary == ".temp" else ""
