"""Executor of ``LatestBlessedModel`` on Kubeflow Pipelines, which has no resolvers."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from components.baseline_model.pushed_baseline import (
    LOOK_UP,
    NO_BASELINE,
    latest_pushed_model,
)
from components.kubeflow_entrypoint import ABSENT


class Executor(base_executor.BaseExecutor):
    """Executor of ``LatestBlessedModel``.

    Its output ``model`` has the model's own URI. Where there is no baseline, the custom
    property ``ABSENT`` has the entry point of the consumers leave out their input.
    """

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        model = artifact_utils.get_single_instance(output_dict["model"])
        uri: str | None = exec_properties["baseline"]
        if uri == LOOK_UP:
            uri = latest_pushed_model(exec_properties["serving_dir"])
        if uri is None or uri == NO_BASELINE:
            model.set_int_custom_property(ABSENT, 1)
        else:
            model.uri = uri
