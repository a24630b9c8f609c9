"""The ``AdvanceWatermark`` node: the last one of a scheduled run."""

from __future__ import annotations

from tfx import types
from tfx.dsl.components.base import base_component, executor_spec
from tfx.types import component_spec, standard_artifacts

from components.watermark import executor
from components.watermark.executor import MARK


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
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(executor.Executor)

    def __init__(self, *, examples: types.BaseChannel, watermark: str) -> None:
        """Declares the node.

        Args:
          examples: output of TFRecordGen.
          watermark: URI of the mark.
        """
        super().__init__(AdvanceWatermarkSpec(examples=examples, watermark=watermark))
