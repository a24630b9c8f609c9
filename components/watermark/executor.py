"""Executor of ``AdvanceWatermark``: records the data of a complete run."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from components.tfrecord_gen.exec_properties import SPANS
from components.watermark import watermark

# The exec property with the mark's URI.
MARK = "watermark"


class Executor(base_executor.BaseExecutor):
    """Executor of ``AdvanceWatermark``."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        watermark.advance(
            exec_properties[MARK],
            examples.get_string_custom_property(watermark.DATA),
            examples.get_string_custom_property(SPANS),
        )
