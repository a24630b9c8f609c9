"""Executor of ``TFRecordGen``: ingests the chosen files."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

from tfx.components.example_gen import utils
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.input_files import Window, changed, check_staleness
from components.tfrecord_gen.settings import SCHEDULE, SETTINGS, Ingestion, Schedule
from components.tfrecord_gen.span_choice import window_of
from components.watermark import watermark
from sluice.machine_resources import usable_cores
from sluice.storage import digest


class Executor(base_beam_executor.BaseBeamExecutor):
    """Executor of ``TFRecordGen``; uses no Beam.

    It ingests the files chosen for the run, or else those of the newest complete spans.
    """

    def Do(
        self,
        input_dict: dict[str, list[Any]],
        output_dict: dict[str, list[Any]],
        exec_properties: dict[str, Any],
    ) -> None:
        """Writes both outputs; TFX calls it.

        Raises:
          DataError: no span is complete, or a file has changed since it was chosen.
          UsageError: a file cannot be read.
        """
        self._log_startup(input_dict, output_dict, exec_properties)
        settings = Ingestion.model_validate_json(exec_properties[SETTINGS])
        window = window_of(exec_properties)
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        quarantine = artifact_utils.get_single_instance(output_dict["quarantine"])
        splits = settings.split_names
        examples.split_names = artifact_utils.encode_split_names(splits)
        schedule = exec_properties.get(SCHEDULE)
        is_new = not schedule or _has_new_data(window, schedule, examples)
        report = ingest(
            settings,
            window if is_new else replace(window, files=()),
            {name: artifact_utils.get_split_uri([examples], name) for name in splits},
            quarantine.uri,
            usable_cores(),
        )
        if not is_new:
            return
        window.check_unchanged()
        digests = {file.path: file.sha256 for file in report.files}
        fingerprint = window.fingerprint(
            lambda path: digests.get(str(path)) or digest.of_file(path)
        )
        before = exec_properties.get(utils.FINGERPRINT_PROPERTY_NAME) or fingerprint
        # TFX's driver, in a service, has another format.
        if before.startswith("sha256:") and before != fingerprint:
            raise changed(window, [f"fingerprint {before}, now {fingerprint}"])
        _describe(examples, window, fingerprint)
        quarantine.set_int_custom_property("records", report.records)
        quarantine.set_int_custom_property("quarantined", report.quarantined)


def _has_new_data(window: Window, schedule_json: str, examples: Any) -> bool:
    """Sets the properties that the tasks after this one are skipped by.

    Raises:
      DataError: the newest span is too old.
    """
    schedule = Schedule.model_validate_json(schedule_json)
    check_staleness(window, schedule.stale_after_h, time.time())
    identity = window.fingerprint()
    is_new = watermark.read(schedule.watermark) != identity
    examples.set_int_custom_property(watermark.NEW_DATA, int(is_new))
    examples.set_string_custom_property(watermark.DATA, identity)
    return is_new


def _describe(examples: Any, window: Window, fingerprint: str) -> None:
    """Sets the properties that TFX's ExampleGen and its driver set."""
    newest = window.spans[-1] if window.spans else None
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, "tfrecords_gzip")
    examples.set_int_custom_property(
        utils.SPAN_PROPERTY_NAME, newest.number if newest else 0
    )
    if newest and newest.version is not None:
        examples.set_int_custom_property(utils.VERSION_PROPERTY_NAME, newest.version)
    examples.set_string_custom_property(utils.FINGERPRINT_PROPERTY_NAME, fingerprint)
