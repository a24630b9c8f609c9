"""The ``TFRecordGen`` node: ingests TFRecords into ``Examples`` and a quarantine."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tfx import types
from tfx.components.example_gen import component
from tfx.dsl.components.base import base_beam_component, executor_spec
from tfx.orchestration import data_types
from tfx.proto import example_gen_pb2
from tfx.types import component_spec, standard_artifacts, standard_component_specs

from components import artifacts
from components.tfrecord_gen import driver, executor
from components.tfrecord_gen.checking.hash_splits import HashSplits
from components.tfrecord_gen.checking.image_check import ImageCheck
from components.tfrecord_gen.exec_properties import SCHEDULE, SPANS, ExecProperties
from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.span_pattern import SpanPattern
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES

ALWAYS = CompleteWhen()


class TFRecordGenSpec(component_spec.ComponentSpec):
    """Interface of a file-based ExampleGen, with own properties and quarantine."""

    PARAMETERS = {
        **standard_component_specs.FileBasedExampleGenSpec.PARAMETERS,
        **{
            name: component_spec.ExecutionParameter(type=str)
            for name in ("patterns", "hash_splits", "images", "complete_when", SPANS)
        },
        **{
            name: component_spec.ExecutionParameter(type=int)
            for name in ("window", "max_record_bytes")
        },
        # Set in the specs of schedules only, see ``exec_properties.Schedule``.
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
    spans are pinned by ``spans``, or selected by the executor; then the pipeline's
    cache must be off, since the cache key does not depend on the files. It gets a
    pattern without placeholders unchanged, and adds counts, sizes and times of the
    files to the cache key. Local runs use the node's own driver.

    Example::

        gen = TFRecordGen(
            input_base="data/trips",
            patterns={"train": "{SPAN}/train-*", "eval": "{SPAN}/eval-*"},
            window=7,
            complete_when=CompleteWhen(marker="_SUCCESS"),
        )
    """

    SPEC_CLASS = TFRecordGenSpec
    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(executor.Executor)
    DRIVER_CLASS = driver.Driver

    def __init__(
        self,
        input_base: str,
        patterns: Mapping[str | None, str],
        *,
        hash_splits: HashSplits | None = None,
        images: Sequence[ImageCheck] = (),
        max_record_bytes: int = MAX_RECORD_BYTES,
        window: int = 1,
        complete_when: CompleteWhen = ALWAYS,
        spans: str | data_types.RuntimeParameter = "",
    ) -> None:
        """Declares the node.

        Args:
          input_base: the data's directory, or an address such as ``gs://bucket/trips``.
          patterns: by split; or one pattern under None, with ``hash_splits``.
          hash_splits: how records are divided.
          images: features whose images are checked.
          max_record_bytes: longer records are quarantined unread.
          window: how many spans to ingest, the newest complete ones.
          complete_when: when a span counts as complete.
          spans: exactly these, in the form of ``Window.spans_json``, or a runtime
            parameter with it; "" selects when the node runs.

        Raises:
          ConfigError: a pattern cannot be used.
          ValueError: ``hash_splits`` without a pattern under None, or without it.
        """
        if (hash_splits is None) == (None in patterns) or len(patterns) == 0:
            raise ValueError(
                "pass patterns by split, or one under None and hash_splits"
            )
        asked = ExecProperties(
            input_base,
            patterns,
            hash_splits,
            tuple(images),
            max_record_bytes,
            window,
            complete_when,
        )
        # Past FileBasedExampleGen's own, which makes a spec with one output.
        base_beam_component.BaseBeamComponent.__init__(
            self,
            TFRecordGenSpec(
                input_base=input_base,
                input_config=_input_config(patterns),
                output_config=_output_config(hash_splits),
                output_data_format=example_gen_pb2.FORMAT_TF_EXAMPLE,
                output_file_format=example_gen_pb2.FORMAT_TFRECORDS_GZIP,
                spans=spans,
                examples=types.Channel(type=standard_artifacts.Examples),
                quarantine=types.Channel(type=artifacts.Quarantine),
                **asked.to_dict(),
            ),
        )


def _input_config(patterns: Mapping[str | None, str]) -> example_gen_pb2.Input:
    return example_gen_pb2.Input(
        splits=[
            example_gen_pb2.Input.Split(
                name=split or "all", pattern=_shown_to_tfx(pattern)
            )
            for split, pattern in patterns.items()
        ]
    )


def _shown_to_tfx(pattern: str) -> str:
    if not SpanPattern.parse(pattern).placeholders:
        return pattern
    return re.sub(r"\{(.*?)\}", r"<\1>", pattern)


def _output_config(hash_splits: HashSplits | None) -> example_gen_pb2.Output:
    if hash_splits is None:
        return example_gen_pb2.Output()
    config = example_gen_pb2.SplitConfig(partition_feature_name=hash_splits.by)
    for split, buckets in hash_splits.buckets.items():
        config.splits.add(name=split, hash_buckets=buckets)
    return example_gen_pb2.Output(split_config=config)
