"""Records the contents of outputs, and verifies inputs against that record.

TFX reads whatever files an artifact's URI has, even if they changed since the artifact
was published. The record is a custom property; see ``sluice.storage.contents``.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from tfx.types import standard_artifacts
from tfx.utils import path_utils

from sluice.errors import NodeError, ServingError
from sluice.mlmd_items import origin_of, plain_properties
from sluice.storage.contents import PROPERTY, Contents, Damage


def record_outputs(
    outputs: Mapping[str, Sequence[Any]], executor_output: Any | None
) -> None:
    """Adds the record to outputs that are about to be published.

    Args:
      outputs: TFX's artifacts by key.
      executor_output: the executor's own list of them, which TFX publishes instead.
    """
    returned = executor_output.output_artifacts if executor_output else {}
    for key, artifacts in outputs.items():
        is_model = any(isinstance(item, standard_artifacts.Model) for item in artifacts)
        own = [item.mlmd_artifact for item in artifacts]
        for proto in returned[key].artifacts if key in returned else own:
            _record(proto, is_model)


def _record(artifact: Any, is_model: bool) -> None:
    uri = artifact.uri
    model_dir = path_utils.serving_model_path(uri) if is_model else None
    found = Contents.read(uri, model_dir and os.path.relpath(model_dir, uri))
    if found:
        artifact.custom_properties[PROPERTY].string_value = found.to_json()


def check_inputs(
    mlmd_connection: Any, execution_info: Any, *, in_project: bool
) -> None:
    """Raises an error if an input has changed since its producer wrote it.

    External artifacts, which an Importer registers, may change and are not checked.

    Args:
      mlmd_connection: TFX's connection to ML Metadata.
      execution_info: TFX's, of the node that is about to run.
      in_project: true for ``sluice run``, false for a script's pipeline.

    Raises:
      ServingError: the node pushes a model.
      NodeError: the node is any other.
    """
    for key, artifacts in execution_info.input_dict.items():
        for artifact in artifacts:
            if artifact.is_external:
                continue
            recorded = Contents.recorded(plain_properties(artifact.mlmd_artifact))
            if damage := recorded and recorded.damage(artifact.uri):
                raise _damaged(
                    mlmd_connection, execution_info, key, artifact, damage, in_project
                )


def _damaged(
    mlmd_connection: Any,
    execution_info: Any,
    key: str,
    artifact: Any,
    damage: Damage,
    in_project: bool,
) -> NodeError | ServingError:
    with mlmd_connection as handle:
        origin = origin_of(handle.store, artifact.id)
    pushes = any(
        isinstance(item, standard_artifacts.PushedModel)
        for items in execution_info.output_dict.values()
        for item in items
    )
    node = execution_info.pipeline_node.node_info.id
    if in_project:
        hint = (
            f"start a new run, `sluice run {execution_info.pipeline_info.id}`: it "
            "re-creates the output, and skips a damaged baseline"
        )
    else:
        hint = (
            "run the whole pipeline again, with another run_id: that re-creates the "
            "output"
        )
    return (ServingError if pushes else NodeError)(
        f"{node} was not run: its input {key!r} is damaged; artifact {artifact.id}, "
        f"which {origin.node} made in run {origin.run_id}, has changed since",
        where=artifact.uri,
        expected=damage.expected,
        actual=damage.actual,
        hint=hint,
    )
