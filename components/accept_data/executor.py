"""Executor of ``AcceptData``: writes accepted statistics to the baseline store."""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from components.accept_data.data_baselines import Entry, holds, identify, write_entry
from components.run_id import run_id_of
from components.tfrecord_gen.report import Report
from sluice.clock import utc_now
from sluice.errors import DataError
from sluice.record.verdict import Verdict
from sluice.splits import split_statistics_path
from sluice.storage.storage import storage_for


class Executor(base_executor.BaseExecutor):
    """Executor of ``AcceptData``; data that is stored already is not stored again."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        verdict = Verdict.load(artifact_utils.get_single_uri(input_dict["verdict"]))
        if not verdict.passed:
            raise DataError(
                "this data was not accepted, because its verdict has not passed",
                hint="make this node depend on DataGate",
            )
        report = Report.load(artifact_utils.get_single_uri(input_dict["quarantine"]))
        store = exec_properties["baseline_store"]
        if holds(store, report):
            return
        uri = artifact_utils.get_single_uri(input_dict["statistics"])
        statistics = {
            split: storage_for(uri).read(split_statistics_path(uri, split))
            for split in report.splits
        }
        identity = identify(report)
        has_spans = bool(report.spans)
        entry = Entry(
            name=f"span {identity.span}"
            if has_spans
            else f"data {identity.fingerprint}",
            accepted_at=utc_now(),
            run_id=run_id_of(self._context),
            spans=report.spans,
            splits={split: item.records for split, item in report.splits.items()},
            override=verdict.override,
        )
        write_entry(store, identity, entry, statistics)
