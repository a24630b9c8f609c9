"""Driver of ``DataVerdict``: selects the data baseline before the cache lookup.

The baseline is not an input of the node in the graph, and it changes between runs.
Selected here, it is part of the cache key. Cloud engines run no custom drivers: there
the executor selects it, and the node must not be cached.
"""

from __future__ import annotations

from typing import Any

from tfx.dsl.components.base import base_driver
from tfx.orchestration.portable import base_driver as portable_driver
from tfx.proto.orchestration import driver_output_pb2
from tfx.types import artifact_utils

from components.accept_data.data_baselines import find_data_baseline, identify
from components.tfrecord_gen.report import Report


class Driver(base_driver.BaseDriver, portable_driver.BaseDriver):
    """Driver of ``DataVerdict``; sets the exec property ``baseline``."""

    def __init__(self, metadata_handle: Any) -> None:
        base_driver.BaseDriver.__init__(self, metadata_handle)
        portable_driver.BaseDriver.__init__(self, metadata_handle)

    def run(self, execution_info: Any) -> driver_output_pb2.DriverOutput:
        quarantine = execution_info.input_dict["quarantine"]
        report = Report.load(artifact_utils.get_single_uri(quarantine))
        store = execution_info.exec_properties["baseline_store"]
        found = find_data_baseline(store, identify(report))
        result = driver_output_pb2.DriverOutput()
        result.exec_properties["baseline"].string_value = found
        return result
