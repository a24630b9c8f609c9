"""The ``AcceptData`` node: adds accepted data to the baseline store."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor, executor_spec
from tfx.types import artifact_utils, standard_artifacts
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components import artifacts
from components.artifacts import Artifacts, run_id_of
from components.component import Component
from components.data_baselines import Entry, holds, identify, write_entry
from components.tfrecord_gen.ingestion_report import Report
from sluice.clock import utc_now
from sluice.record.verdict import Verdict
from sluice.splits import split_statistics_path
from sluice.storage.storage import storage_for


class Executor(base_executor.BaseExecutor):
    """Executor of ``AcceptData``; data that is stored already is not stored again."""

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        verdict = Verdict.load(artifact_utils.get_single_uri(input_dict["verdict"]))
        report = Report.load(artifact_utils.get_single_uri(input_dict["quarantine"]))
        store = exec_properties["baseline_store"]
        if holds(store, report):
            return
        uri = artifact_utils.get_single_uri(input_dict["statistics"])
        statistics = {
            split: storage_for(uri).read(split_statistics_path(uri, split))
            for split in report.splits
        }
        span, fingerprint = identity = identify(report)
        entry = Entry(
            name=f"span {span}" if report.spans else f"data {fingerprint}",
            accepted_at=utc_now(),
            run_id=run_id_of(self._context),
            spans=report.spans,
            splits=report.splits,
            contents=tuple(file.sha256 for file in report.files),
            override=verdict.override,
        )
        write_entry(store, identity, entry, statistics)


class AcceptDataSpec(ComponentSpec):
    """Statistics, the ingestion's report and a verdict in, nothing out."""

    PARAMETERS = {"baseline_store": ExecutionParameter(type=str)}
    INPUTS = {
        "statistics": ChannelParameter(type=standard_artifacts.ExampleStatistics),
        "quarantine": ChannelParameter(type=artifacts.Quarantine),
        "verdict": ChannelParameter(type=artifacts.DataVerdict),
    }
    OUTPUTS: dict = {}


class AcceptData(Component):
    """Stores the statistics of accepted data as the baseline of later data.

    It runs after ``DataGate``, so rejected data never becomes a baseline.

    Example::

        accept_data = AcceptData(
            statistics=statistics_gen.outputs["statistics"],
            quarantine=tfrecord_gen.outputs["quarantine"],
            verdict=data_verdict.outputs["verdict"],
            baseline_store="/srv/trips/state/accepted",
        )
        accept_data.add_upstream_node(data_gate)
    """

    SPEC_CLASS = AcceptDataSpec
    EXECUTOR_SPEC = executor_spec.ExecutorClassSpec(Executor)
