"""Driver of ``ModelVerdict``: summarizes the baseline before the cache lookup.

Skipped blessed models are not inputs of the node in the graph. Summarized here, they
are part of the cache key. Cloud engines run no custom drivers: there the verdict names
the baseline by its URI.
"""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_driver
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.proto.orchestration import driver_output_pb2

from components.baseline_model.blessed_models import (
    BlessedModel,
    blessed_models,
    name_of,
    search_baseline,
)
from components.model_verdict.baseline_summary import BaselineSummary, SkippedModel
from sluice.mlmd_items import Artifact, maker_run
from sluice.node_kinds import ABOUT_BASELINE


class Driver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Driver of ``ModelVerdict``; sets the exec property ``compared_with``."""

    def __init__(self, metadata_handle: Any) -> None:
        base_driver.BaseDriver.__init__(self, metadata_handle)
        portable_driver.BaseDriver.__init__(self, metadata_handle)

    def run(self, execution_info: Any) -> driver_output_pb2.DriverOutput:
        pipeline = execution_info.pipeline_info.id
        inputs = execution_info.input_dict
        candidate = [item.id for item in inputs["model"]]
        used = [item.id for item in inputs.get("baseline_model", ())]
        with self._mlmd_connection as handle:
            found = summarize_baseline(handle.store, pipeline, candidate, used)
        result = driver_output_pb2.DriverOutput()
        summary = found.model_dump_json()
        result.exec_properties[ABOUT_BASELINE].string_value = summary
        return result


def summarize_baseline(
    store: Any, pipeline: str, candidate: list[int], used: list[int]
) -> BaselineSummary:
    """Returns the summary of the baseline that was resolved for a candidate.

    Args:
      store: an ML Metadata store.
      pipeline: name of the pipeline.
      candidate: id of the candidate.
      used: id of the resolved baseline; empty if there is none.
    """
    context = store.get_context_by_type_and_name("pipeline", pipeline)
    found = store.get_artifacts_by_context(context.id) if context else ()
    artifacts = [Artifact.of(item) for item in found]

    def name(model: BlessedModel) -> str:
        return name_of(model, maker_run(store, model.model.id), artifacts)

    searched = [*search_baseline(blessed_models(artifacts))]
    names = [name(model) for model, _ in searched if model.model.id in used]
    is_candidate = bool(used) and used == candidate
    return BaselineSummary(
        pipeline=pipeline,
        name=names[0] if names and not is_candidate else None,
        is_candidate=is_candidate,
        skipped=tuple(
            SkippedModel(name=name(model), why=why, retired=model.retired is not None)
            for model, why in searched
            if why
        ),
    )
