"""Executor of ``AcceptData``: writes accepted statistics to the baseline store."""

from __future__ import annotations

import json
from typing import Any

from tensorflow_metadata.proto.v0 import statistics_pb2
from tfx.dsl.components.base import base_executor
from tfx.types import artifact_utils

from components.accept_data.data_baselines import SplitStatistics, identify, write_entry
from components.accept_data.entry import Entry
from components.run_id import run_id_of
from components.tfrecord_gen.report import Report
from sluice.clock import utc_now
from sluice.errors import DataError
from sluice.record.verdict import Verdict
from sluice.splits import number_of_examples, split_statistics_path
from sluice.storage.storage import storage_for


class Executor(base_executor.BaseExecutor):
    """Executor of ``AcceptData``."""

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
        identity = identify(report)
        entry = Entry(
            name=identity.name,
            fingerprint=identity.fingerprint,
            accepted_at=utc_now(),
            run_id=run_id_of(self._context),
            spans=report.spans,
            splits={},
            override=verdict.override,
        )
        uri = artifact_utils.get_single_uri(input_dict["statistics"])
        statistics = {
            split: _statistics(split_statistics_path(uri, split))
            for split in json.loads(exec_properties["splits"])
        }
        write_entry(exec_properties["baseline_store"], entry, statistics)


def _statistics(path: str) -> SplitStatistics:
    content = storage_for(path).read(path)
    parsed = statistics_pb2.DatasetFeatureStatisticsList.FromString(content)
    return SplitStatistics(number_of_examples(parsed), content)
