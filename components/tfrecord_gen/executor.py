"""Executor of ``TFRecordGen``: ingests the files of the chosen spans."""

from __future__ import annotations

import time
from typing import Any

from tfx.components.example_gen import utils
from tfx.components.util import examples_utils
from tfx.dsl.components.base import base_beam_executor
from tfx.proto import example_gen_pb2
from tfx.types import artifact_utils

from components.tfrecord_gen.exec_properties import (
    SCHEDULE,
    SPANS,
    ExecProperties,
    Schedule,
)
from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.ingestion import Ingestion
from components.tfrecord_gen.report import Report
from components.tfrecord_gen.spans.span_choice import changed, check_unchanged
from components.tfrecord_gen.spans.staleness import check_staleness
from components.tfrecord_gen.spans.window import LISTING, Window
from components.watermark import watermark
from sluice.machine_resources import usable_cores
from sluice.storage import digest
from sluice.storage.storage import storage_for

_FILE_FORMAT = "tfrecords_gzip"


class Executor(base_beam_executor.BaseBeamExecutor):
    """Executor of ``TFRecordGen``; uses no Beam.

    It ingests the window chosen for the run, or pinned by the driver. On cloud engines,
    where TFX's driver runs, it ingests the spans in ``spans``, or else the newest
    complete ones.
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
        asked = ExecProperties.from_dict(exec_properties)
        pinned = exec_properties.get(SPANS) or ""
        window = asked.choose(pinned, time.time())
        examples = artifact_utils.get_single_instance(output_dict["examples"])
        quarantine = artifact_utils.get_single_instance(output_dict["quarantine"])
        examples.split_names = artifact_utils.encode_split_names(asked.split_names)
        if changes := window.changes_since(pinned):
            raise changed(window, changes)
        schedule = exec_properties.get(SCHEDULE)
        is_new = not schedule or _has_new_data(window, schedule, examples)
        report = ingest(
            Ingestion(
                files=window.files if is_new else (),
                hash_splits=asked.hash_splits,
                images=asked.images,
                max_record_bytes=asked.max_record_bytes,
                skipped_spans=window.skipped,
            ),
            {
                split: artifact_utils.get_split_uri([examples], split)
                for split in asked.split_names
            },
            quarantine.uri,
            usable_cores(),
        )
        if not is_new:
            return
        check_unchanged(window)
        fingerprint = _fingerprint(window, report)
        _check_same(
            window, exec_properties.get(utils.FINGERPRINT_PROPERTY_NAME), fingerprint
        )
        _describe(examples, window, fingerprint)
        quarantine.set_int_custom_property("records", report.records)
        quarantine.set_int_custom_property("quarantined", report.quarantined)


def _has_new_data(window: Window, schedule_json: str, examples: Any) -> bool:
    """Sets the properties that the tasks after this one are skipped by.

    Raises:
      DataError: the newest span is too old.
    """
    schedule = Schedule.from_json(schedule_json)
    check_staleness(window, schedule.stale_after_h, time.time())
    identity = window.listing_fingerprint()
    is_new = watermark.read(schedule.watermark) != identity
    examples.set_int_custom_property(watermark.NEW_DATA, int(is_new))
    examples.set_string_custom_property(watermark.DATA, identity)
    examples.set_string_custom_property(SPANS, window.spans_json())
    return is_new


def _fingerprint(window: Window, report: Report) -> str:
    """Returns the fingerprint of the ingested files, computed as the driver's."""
    contents = {file.path: file.sha256 for file in report.files}
    for manifest in window.manifests:
        content = storage_for(manifest.path).read(manifest.path)
        contents[manifest.path] = digest.of_bytes(content)
    return window.fingerprint(lambda file: contents[file.path])


def _check_same(window: Window, before: str | None, now: str) -> None:
    """Raises if the files do not have the driver's fingerprint."""
    if before and before.startswith(LISTING):
        now = window.listing_fingerprint()
    elif not (before and before.startswith("sha256:")):
        return  # TFX's driver has another format.
    if before != now:
        raise changed(window, [f"fingerprint {before}, now {now}"])


def _describe(examples: Any, window: Window, fingerprint: str) -> None:
    """Sets the properties that TFX's ExampleGen and its driver set."""
    newest = window.newest
    examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
    examples_utils.set_file_format(examples, _FILE_FORMAT)
    examples.set_int_custom_property(
        utils.SPAN_PROPERTY_NAME, newest.number if newest else 0
    )
    if newest and newest.version is not None:
        examples.set_int_custom_property(utils.VERSION_PROPERTY_NAME, newest.version)
    examples.set_string_custom_property(utils.FINGERPRINT_PROPERTY_NAME, fingerprint)
    examples.set_string_custom_property(SPANS, window.spans_json())
