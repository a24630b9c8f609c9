"""The ``TFRecordGen`` node: ingests TFRecords into ``Examples`` and a quarantine."""

from __future__ import annotations

import re

from tfx import types
from tfx.components.example_gen import component
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration import data_types
from tfx.proto import example_gen_pb2
from tfx.types import component_spec, standard_artifacts, standard_component_specs

from components import artifacts
from components.tfrecord_gen import driver, executor
from components.tfrecord_gen.settings import SCHEDULE, SETTINGS, SPANS, Ingestion


class TFRecordGenSpec(component_spec.ComponentSpec):
    """Interface of a file-based ExampleGen, with own properties and quarantine."""

    PARAMETERS = {
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        SETTINGS: component_spec.ExecutionParameter(type=str),
        SPANS: component_spec.ExecutionParameter(type=str),
        # Set in the specs of schedules only, see ``settings.Schedule``.
        SCHEDULE: component_spec.ExecutionParameter(type=str, optional=True),
    }
    INPUTS: dict[str, component_spec.ChannelParameter] = {}
    OUTPUTS = {
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "quarantine": component_spec.ChannelParameter(type=artifacts.Quarantine),
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
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

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
