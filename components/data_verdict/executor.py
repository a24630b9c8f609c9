"""Reads statistics and anomalies of every split, judges, and publishes."""

from __future__ import annotations

import json
import os
from typing import Any

from tensorflow_metadata.proto.v0 import anomalies_pb2, statistics_pb2
from tfx.dsl.components.base import base_executor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils

from components.data_verdict.judge import judge
from components.publish_verdict import publish_verdict


class Executor(base_executor.BaseExecutor):
    """Executor of ``DataVerdict``; it succeeds whatever the verdict is."""

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        splits = json.loads(exec_properties["splits"])
        statistics = artifact_utils.get_single_uri(input_dict["statistics"])
        anomalies = artifact_utils.get_single_uri(input_dict["anomalies"])
        verdict = judge(
            splits,
            {
                split: _read(
                    os.path.join(statistics, f"Split-{split}", "FeatureStats.pb"),
                    statistics_pb2.DatasetFeatureStatisticsList(),
                )
                for split in splits
            },
            {
                split: _read(
                    os.path.join(anomalies, f"Split-{split}", "SchemaDiff.pb"),
                    anomalies_pb2.Anomalies(),
                )
                for split in splits
            },
        )
        publish_verdict(
            verdict, artifact_utils.get_single_instance(output_dict["verdict"])
        )


def _read(path: str, message: Any) -> Any:
    """Parses a file into ``message``; returns None if it was never written."""
    if not fileio.exists(path):
        return None
    with fileio.open(path, "rb") as file:
        message.ParseFromString(file.read())
    return message
