"""Reads model and blessing, publishes through the model store, records the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tfx.components.evaluator import constants as evaluator_constants
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils
from tfx.utils import path_utils

from serving.model_store import ModelStore


class Executor(base_executor.BaseExecutor):
    """Executor of ``Pusher``.

    The PushedModel artifact says in its custom properties what happened: ``state``
    (``pushed``, ``already_served`` or ``blocked``), TFX's own ``pushed``,
    ``pushed_version`` and ``pushed_destination``, and ``digest``.
    """

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        pushed = artifact_utils.get_single_instance(output_dict["pushed_model"])
        blessing = artifact_utils.get_single_instance(input_dict["blessing"])
        blessed = blessing.get_int_custom_property(
            evaluator_constants.ARTIFACT_PROPERTY_BLESSED_KEY
        )
        if blessed != evaluator_constants.BLESSED_VALUE:
            pushed.set_int_custom_property("pushed", 0)
            pushed.set_string_custom_property("state", "blocked")
            return
        model = artifact_utils.get_single_instance(input_dict["model"])
        model_dir = path_utils.serving_model_path(
            model.uri, path_utils.is_old_model_artifact(model)
        )
        publication = ModelStore(Path(exec_properties["serving_dir"])).publish(
            Path(model_dir),
            facts={
                "pipeline_run_id": self._context.pipeline_run_id
                if self._context
                else None,
                "model_uri": model.uri,
            },
        )
        pushed.set_int_custom_property("pushed", 1)
        pushed.set_string_custom_property("state", publication.state)
        pushed.set_string_custom_property("pushed_version", str(publication.version))
        pushed.set_string_custom_property("pushed_destination", str(publication.path))
        pushed.set_string_custom_property("digest", publication.digest)
