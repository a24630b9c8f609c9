"""The ``TFRecordGen`` node: ingests TFRecords into ``Examples`` and a quarantine."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from tfx import types
from tfx.components.example_gen import component, utils
from tfx.components.example_gen import driver as example_gen_driver
from tfx.components.util import examples_utils
from tfx.dsl.components.base import (
    base_beam_component,
    base_beam_executor,
    executor_spec,
)
from tfx.orchestration import data_types
from tfx.proto import example_gen_pb2
from tfx.types import (
    artifact_utils,
    standard_artifacts,
    standard_component_specs,
)
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from components import artifacts, watermark
from components.artifacts import Artifacts
from components.tfrecord_gen.ingest import ingest
from components.tfrecord_gen.input_files import Window, check_staleness, fingerprint
from components.tfrecord_gen.select_spans import window_of
from components.tfrecord_gen.settings import (
    SCHEDULE,
    SETTINGS,
    SPANS,
    Ingestion,
    Schedule,
)
from sluice import progress
from sluice.beam_options import (
    DATAFLOW_RUNNER,
    ENGINE_RUNNER,
    PARALLEL_FROM_BYTES,
)
from sluice.errors import bounded
from sluice.machine_resources import data_workers
from sluice.node_environment import node_environment
from sluice.node_kinds import NEW_DATA
from sluice.storage import digest
from sluice.storage.stat_cache import FileDigests


class Executor(base_beam_executor.BaseBeamExecutor):
    """Executor of ``TFRecordGen``; uses Beam only on an engine.

    It ingests the files chosen for the run, or else those of the newest complete spans.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
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
        read = window if is_new else replace(window, files=())
        dirs = {x: artifact_utils.get_split_uri([examples], x) for x in splits}
        on_engine = self._make_beam_pipeline if self._uses_engine(read) else None
        report = ingest(settings, read, dirs, quarantine.uri, data_workers(), on_engine)
        if not is_new:
            return
        if empty := report.empty_files:
            progress.note(
                f"{len(empty):,} of {len(report.files):,} files hold no records: "
                f"{', '.join(bounded(empty))}"
            )
        window.check_unchanged()
        examples_utils.set_payload_format(examples, example_gen_pb2.FORMAT_TF_EXAMPLE)
        examples_utils.set_file_format(examples, "tfrecords_gzip")
        newest = window.spans[-1] if window.spans else None
        examples.set_int_custom_property(
            utils.SPAN_PROPERTY_NAME, newest.number if newest else 0
        )
        if newest and newest.version is not None:
            name = utils.VERSION_PROPERTY_NAME
            examples.set_int_custom_property(name, newest.version)
        name = utils.FINGERPRINT_PROPERTY_NAME
        examples.set_string_custom_property(name, fingerprint(report.contents))
        quarantine.set_int_custom_property("records", report.records)
        quarantine.set_int_custom_property("quarantined", report.quarantined)

    def _uses_engine(self, window: Window) -> bool:
        """Whether Beam runs elsewhere, and the files are worth it."""
        if not {ENGINE_RUNNER, DATAFLOW_RUNNER} & {*self._beam_pipeline_args}:
            return False
        size = sum(file.size_bytes for file in window.files)
        return bool(node_environment().workers) or size >= PARALLEL_FROM_BYTES


def _has_new_data(window: Window, schedule_json: str, examples: Any) -> bool:
    """Sets the properties that the tasks after this one are skipped by.

    Raises:
      DataError: the newest span is too old.
    """
    schedule = Schedule.model_validate_json(schedule_json)
    check_staleness(window, schedule.stale_after_h, time.time())
    identity = fingerprint(window.contents())
    is_new = watermark.read(schedule.watermark) != identity
    examples.set_int_custom_property(NEW_DATA, int(is_new))
    examples.set_string_custom_property(watermark.DATA, identity)
    return is_new


class Driver(example_gen_driver.FileBasedDriver):
    """Driver of ``TFRecordGen`` in local runs.

    TFX's driver resolves one span, and its fingerprint has counts, sizes and times in
    seconds: a touched file is ingested and trained on again, one replaced by ``cp -p``
    is not. Here the fingerprint is a digest of the files' contents; for files in a
    bucket, of their sizes and generations.
    """

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], *arguments: Any, **options: Any
    ) -> dict[str, Any]:
        """Returns the properties with ``span``, ``version`` and the fingerprint set.

        Raises:
          DataError: a chosen file has changed, or is gone.
        """
        window = window_of(exec_properties)
        newest = window.spans[-1] if window.spans else None
        return {
            **exec_properties,
            utils.SPAN_PROPERTY_NAME: newest.number if newest else 0,
            utils.VERSION_PROPERTY_NAME: newest.version if newest else None,
            utils.FINGERPRINT_PROPERTY_NAME: fingerprint(contents_of(window)),
        }


def contents_of(window: Window) -> dict[str, str]:
    """Returns a window's contents, with digests from a cache if the run has one."""
    memory = node_environment().file_digests
    return window.contents(FileDigests(Path(memory)).of if memory else digest.of_file)


class TFRecordGenSpec(ComponentSpec):
    """Interface of a file-based ExampleGen, with own properties and quarantine."""

    PARAMETERS = {
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        SETTINGS: ExecutionParameter(type=str),
        SPANS: ExecutionParameter(type=str),
        # Set in the specs of schedules only, see ``settings.Schedule``.
        SCHEDULE: ExecutionParameter(type=str, optional=True),
    }
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {
        "examples": ChannelParameter(type=standard_artifacts.Examples),
        "quarantine": ChannelParameter(type=artifacts.Quarantine),
    }


class TFRecordGen(component.FileBasedExampleGen):
    """Ingests the TFRecords of the newest complete spans, and checks every record.

    ``examples`` is the same as ImportExampleGen's. ``quarantine`` has ``report.json``
    and the bad records, which do not fail this node: ``DataGate`` judges them.

    It is a ``FileBasedExampleGen`` because only for those Kubeflow's compiler adds a
    driver step before the cache lookup, which is TFX's own
    (tfx/orchestration/kubeflow/v2/file_based_example_gen/driver.py). That driver reads
    only ``input_config``, supports a window of one span, and fails if the newest span
    is not in every split yet. So it gets a pattern with placeholders as
    ``span-<SPAN>/train-*``, which matches no file: it finds span 0 without files. The
    files are those that ``spans`` names, or the executor selects them; then the
    pipeline's cache must be off, since the cache key does not depend on the files. It
    gets a pattern without placeholders unchanged, and adds counts, sizes and times of
    the files to the cache key. Local runs use the node's own driver.

    Example::

        gen = TFRecordGen(
            Ingestion(
                base="data/trips",
                patterns={"train": "{SPAN}/train-*", "eval": "{SPAN}/eval-*"},
                window=7,
                complete_when=CompleteWhen(marker="_SUCCESS"),
            )
        )
    """

    SPEC_CLASS = TFRecordGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
    DRIVER_CLASS = Driver

    def __init__(
        self, settings: Ingestion, spans: str | data_types.RuntimeParameter = ""
    ) -> None:
        """Declares the node.

        Args:
          settings: the files, and the checks of their records.
          spans: where exactly the files to ingest are stored, see
            ``SpanChoice.to_json``; "" selects when the node runs.
        """
        # Past FileBasedExampleGen's own, which makes a spec with one output.
        base_beam_component.BaseBeamComponent.__init__(
            self,
            TFRecordGenSpec(
                input_base=settings.base,
                input_config=example_gen_pb2.Input(
                    splits=[
                        example_gen_pb2.Input.Split(
                            name=split or "all",
                            pattern=re.sub(r"\{(.*?)\}", r"<\1>", pattern),
                        )
                        for split, pattern in settings.patterns.items()
                    ]
                ),
                output_config=example_gen_pb2.Output(),
                output_data_format=example_gen_pb2.FORMAT_TF_EXAMPLE,
                output_file_format=example_gen_pb2.FORMAT_TFRECORDS_GZIP,
                settings=settings.model_dump_json(),
                spans=spans,
                examples=types.Channel(type=standard_artifacts.Examples),
                quarantine=types.Channel(type=artifacts.Quarantine),
            ),
        )
