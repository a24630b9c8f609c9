"""The ``AdvanceWatermark`` node: the last one of a scheduled run."""

from __future__ import annotations

from typing import Any

from tfx import types
from tfx.dsl.components.base import base_component, base_executor, executor_spec
from tfx.types import artifact_utils, component_spec, standard_artifacts

from components.watermark import watermark as marks

# The exec property with the mark's URI.
MARK = "watermark"


class Executor(base_executor.BaseExecutor):
    """Records the data of a complete run."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        data = examples.get_string_custom_property(marks.DATA)
        marks.advance(exec_properties[MARK], data)


class AdvanceWatermarkSpec(component_spec.ComponentSpec):
    """The ingested examples in, nothing out."""

    PARAMETERS = {MARK: component_spec.ExecutionParameter(type=str)}
    INPUTS = {
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples)
    }
    OUTPUTS: dict = {}


class AdvanceWatermark(base_component.BaseComponent):
    """Records that a run on this data is complete, so that no other repeats it.

    It runs after all other nodes: after a failed run, the next one takes its data
    again.

    Example::

        last = AdvanceWatermark(
            examples=tfrecord_gen.outputs["examples"],
            watermark="gs://bucket/trips/state/watermark.json",
        )
        last.add_upstream_node(pusher)
    """

    SPEC_CLASS = AdvanceWatermarkSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)

    def __init__(self, *, examples: types.BaseChannel, watermark: str) -> None:
        """Takes the output of TFRecordGen, and the URI of the mark."""
        super().__init__(AdvanceWatermarkSpec(examples=examples, watermark=watermark))
