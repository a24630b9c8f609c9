"""High-water mark of a schedule: the data of its last complete run.

``AdvanceWatermark`` is the last node of a scheduled run. Each compiled spec has a mark
of its own, so that a changed config or changed code runs once on the same data. See
docs/adr/0010-scheduled-runs.md.
"""

from __future__ import annotations

import json
import os
from typing import Any

from tfx.dsl.components.base import base_executor, executor_spec
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components.artifacts import Artifacts
from components.component import Component
from sluice.clock import utc_now
from sluice.storage.storage import storage_for

# The exec property with the mark's URI.
MARK = "watermark"
# Custom property of the examples of a scheduled run: what identifies their data.
DATA = "data"


def read(uri: str) -> str | None:
    """Returns what identifies the data of the last complete run; None without one."""
    storage = storage_for(uri)
    if not storage.exists(uri):
        return None
    return json.loads(storage.read(uri))[DATA]


def advance(uri: str, data: str) -> None:
    """Records the data of a complete run.

    Args:
      uri: of the mark.
      data: what identifies it.
    """
    record = {DATA: data, "at": utc_now()}
    storage = storage_for(uri)
    storage.make_folder(os.path.dirname(uri))
    storage.write_atomically(uri, json.dumps(record).encode())


class Executor(base_executor.BaseExecutor):
    """Records the data of a complete run."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        data = examples.get_string_custom_property(DATA)
        advance(exec_properties[MARK], data)


class AdvanceWatermarkSpec(ComponentSpec):
    """The ingested examples in, nothing out."""

    PARAMETERS = {MARK: ExecutionParameter(type=str)}
    INPUTS = {"examples": ChannelParameter(type=standard_artifacts.Examples)}
    OUTPUTS: dict = {}


class AdvanceWatermark(Component):
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
