"""Executor of ``Pusher``: checks blessings, pushes to the model store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tfx.components.pusher import executor
from tfx.proto import pusher_pb2
from tfx.types import artifact_utils
from tfx.utils import path_utils, proto_utils

from components.artifacts import run_id_of
from components.baseline_model.blessed_models import RETIRED
from serving.model_store import Publication, store_at
from serving.store_owner import Owner
from sluice.errors import RemoteError, RetiredModelError, UsageError
from sluice.node_kinds import METRICS, PREDICTIONS
from sluice.secrets import redact
from sluice.storage.output_path import resolve_output_uri

_BLESSINGS = ("model_blessing", "infra_blessing")


class Executor(executor.Executor):
    """Executor of ``Pusher``.

    The PushedModel artifact has the result in its custom properties: ``state``
    (``pushed``, ``already_served`` or ``blocked``), TFX's own ``pushed``,
    ``pushed_version`` and ``pushed_destination``, ``digest``, and ``model_uri`` of the
    trained model; with a registry or an endpoint of Vertex AI in ``custom_config``,
    ``registered_model`` and ``endpoint``.
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
        for model in input_dict.get("model", ()):
            # A run that is resumed was blessed before.
            if reason := model.get_string_custom_property(RETIRED):
                raise RetiredModelError(
                    f"the model was retired ({reason}), and is not pushed",
                    where=model.uri,
                )
        source = input_dict.get("model") or input_dict["infra_blessing"]
        model_uri = artifact_utils.get_single_uri(source)
        store = store_at(_directory(exec_properties["push_destination"]))
        run_id = run_id_of(self._context) or None
        custom_config = json.loads(exec_properties.get("custom_config") or "null") or {}
        publication = store.publish(
            self.GetModelPath(input_dict),
            facts={
                "pipeline_run_id": run_id,
                "model_uri": model_uri,
                METRICS: _metrics(input_dict),
                **_predictions(input_dict),
            },
            owner=self._owner(custom_config),
        )
        pushed.set_int_custom_property("pushed", 1)
        pushed.set_string_custom_property("state", publication.state)
        pushed.set_string_custom_property("pushed_version", str(publication.version))
        pushed.set_string_custom_property("pushed_destination", publication.uri)
        pushed.set_string_custom_property("digest", publication.digest)
        pushed.set_string_custom_property("model_uri", model_uri)
        if custom_config.get("registry"):
            _push_to_vertex(pushed, publication, custom_config, run_id)

    def CheckBlessing(self, input_dict: dict[str, list[Any]]) -> bool:
        """Whether all connected blessings exist and are positive.

        TFX's own also pushes if the node that should bless the model has not run.
        """
        named = [input_dict[key] for key in _BLESSINGS if key in input_dict]
        return all(named) and bool(super().CheckBlessing(input_dict))

    def GetModelPath(self, input_dict: dict[str, list[Any]]) -> str:
        """Returns the path of the blessing's copy of the model, if it has one.

        TFX's own prefers the model, which has no exports beside it.
        """
        for blessing in input_dict.get("infra_blessing", ()):
            if blessing.get_int_custom_property("has_model"):
                return path_utils.stamped_model_path(blessing.uri)
        return super().GetModelPath(input_dict)

    def _owner(self, custom_config: dict[str, Any]) -> Owner | None:
        """Returns the pipeline as owner; None if the orchestrator does not name it."""
        pipeline = self._context.pipeline_info if self._context else None
        if pipeline is None:
            return None
        return Owner(pipeline.id, custom_config.get("workspace_id"))


def _metrics(input_dict: dict[str, list[Any]]) -> dict[str, float]:
    """Returns the metrics by which the model was blessed."""
    blessings = input_dict.get("model_blessing", ())
    metrics = (item.get_string_custom_property(METRICS) for item in blessings)
    return json.loads(next(metrics, "") or "{}")


def _predictions(input_dict: dict[str, list[Any]]) -> dict[str, str]:
    """Returns the fact of what the model predicts, if that was kept."""
    blessings = input_dict.get("infra_blessing", ())
    found = [x.get_string_custom_property(PREDICTIONS) for x in blessings]
    return {PREDICTIONS: found[0]} if any(found) else {}


def _push_to_vertex(
    pushed: Any,
    publication: Publication,
    custom_config: dict[str, Any],
    run_id: str | None,
) -> None:
    """Registers and deploys a version; names both in the artifact's properties."""
    # Imported here: Google's library takes 12 seconds.
    from google.api_core.exceptions import GoogleAPIError

    from components.pusher.vertex_push import deploy, register

    try:
        model = register(publication, custom_config["registry"], run_id)
        name = model.versioned_resource_name
        pushed.set_string_custom_property("registered_model", name)
        if endpoint := custom_config.get("endpoint"):
            served = deploy(model, endpoint)
            pushed.set_string_custom_property("endpoint", served)
    except GoogleAPIError as error:
        raise RemoteError(
            "the model was pushed, but not registered and deployed; what was served at "
            f"an endpoint still is: {redact(str(error))}"
        ) from error


def _directory(push_destination: str) -> str:
    """Returns the directory that a ``PushDestination``, as JSON, names."""
    destination = pusher_pb2.PushDestination()
    proto_utils.json_to_proto(push_destination, destination)
    filesystem = destination.filesystem
    if not filesystem.base_directory or filesystem.versioning != pusher_pb2.AUTO:
        raise UsageError(
            "push_destination is not supported",
            where="push_destination",
            expected="filesystem.base_directory, and no versioning: versions are "
            "numbered one by one",
            actual=push_destination,
        )
    return resolve_output_uri(filesystem.base_directory, Path.cwd(), "push_destination")
