"""Executor of ``Pusher``: checks blessings, pushes to the model store."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tfx.components.pusher import executor
from tfx.proto import pusher_pb2
from tfx.types import artifact_utils
from tfx.utils import proto_utils

from components.run_id import run_id_of
from serving.model_store import Publication, store_at
from serving.store_owner import Owner
from sluice.errors import UsageError
from sluice.mlmd_items import plain_properties
from sluice.storage.contents import Contents
from sluice.storage.output_path import resolve_output_uri

_BLESSINGS = ("model_blessing", "infra_blessing")


class Executor(executor.Executor):
    """Executor of ``Pusher``.

    The PushedModel artifact has the result in its custom properties: ``state``
    (``pushed``, ``already_served`` or ``blocked``), TFX's own ``pushed``,
    ``pushed_version`` and ``pushed_destination``, and ``digest``; with a registry or an
    endpoint of Vertex AI in ``custom_config``, ``registered_model`` and ``endpoint``.
    """

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        if not self.CheckBlessing(input_dict):
            pushed.set_int_custom_property("pushed", 0)
            pushed.set_string_custom_property("state", "blocked")
            return
        source = input_dict.get("model") or input_dict["infra_blessing"]
        store = store_at(_directory(exec_properties["push_destination"]))
        model_dir = self.GetModelPath(input_dict)
        run_id = run_id_of(self._context) or None
        custom_config = json.loads(exec_properties.get("custom_config") or "null") or {}
        publication = store.publish(
            model_dir,
            expected_digest=_digest_when_made(source, model_dir),
            facts={
                "pipeline_run_id": run_id,
                "model_uri": artifact_utils.get_single_uri(source),
            },
            owner=self._owner(custom_config),
        )
        pushed.set_int_custom_property("pushed", 1)
        pushed.set_string_custom_property("state", publication.state)
        pushed.set_string_custom_property("pushed_version", str(publication.version))
        pushed.set_string_custom_property("pushed_destination", publication.uri)
        pushed.set_string_custom_property("digest", publication.digest)
        if custom_config.get("registry"):
            _push_to_vertex(pushed, publication, custom_config, run_id)

    def CheckBlessing(self, input_dict: dict[str, list[Any]]) -> bool:
        """Whether all connected blessings exist and are positive.

        TFX's own also pushes if the node that should bless the model has not run.
        """
        named = [input_dict[key] for key in _BLESSINGS if key in input_dict]
        return all(named) and bool(super().CheckBlessing(input_dict))

    def _owner(self, custom_config: dict[str, Any]) -> Owner | None:
        """Returns the pipeline as owner; None if the orchestrator does not name it."""
        pipeline = self._context.pipeline_info if self._context else None
        if pipeline is None:
            return None
        return Owner(pipeline.id, custom_config.get("workspace_id"))


def _push_to_vertex(
    pushed: Any,
    publication: Publication,
    custom_config: dict[str, Any],
    run_id: str | None,
) -> None:
    """Registers and deploys a version; names both in the artifact's properties."""
    from components.pusher.vertex_push import Endpoint, Registry, VertexPush

    push = VertexPush(Registry(**custom_config["registry"]))
    registered = push.register(publication, run_id)
    pushed.set_string_custom_property("registered_model", str(registered))
    if endpoint := custom_config.get("endpoint"):
        name = push.deploy(registered, Endpoint(**endpoint))
        pushed.set_string_custom_property("endpoint", name)


def _digest_when_made(source: list[Any], model_dir: str) -> str | None:
    """Returns the recorded digest of a model's directory; None if there is none."""
    artifact = artifact_utils.get_single_instance(source)
    recorded = Contents.recorded(plain_properties(artifact.mlmd_artifact))
    if not recorded or not recorded.model_dir:
        return None
    is_same = os.path.join(artifact.uri, recorded.model_dir) == model_dir
    return recorded.model_digest if is_same else None


def _directory(push_destination: str) -> str:
    """Returns the directory that a ``PushDestination``, as JSON, names."""
    given = pusher_pb2.PushDestination()
    proto_utils.json_to_proto(push_destination, given)
    filesystem = given.filesystem
    if not filesystem.base_directory or filesystem.versioning != pusher_pb2.AUTO:
        raise UsageError(
            "push_destination is not supported",
            where="push_destination",
            expected="filesystem.base_directory, and no versioning: versions are "
            "numbered one by one",
            actual=push_destination,
        )
    return resolve_output_uri(filesystem.base_directory, Path.cwd(), "push_destination")
