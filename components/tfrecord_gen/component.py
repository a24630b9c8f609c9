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
from components.tfrecord_gen.exec_properties import SPANS, ExecProperties
from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.span_pattern import SpanPattern
from sluice.tfrecords.frame_encoding import MAX_RECORD_BYTES

ALWAYS = CompleteWhen()


class TFRecordGenSpec(component_spec.ComponentSpec):
    """The interface of a file-based ExampleGen, and what it lacks."""

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
    }
    INPUTS: dict[str, component_spec.ChannelParameter] = {}
    OUTPUTS = {
        "examples": component_spec.ChannelParameter(type=standard_artifacts.Examples),
        "quarantine": component_spec.ChannelParameter(type=artifacts.Quarantine),
    }


class TFRecordGen(component.FileBasedExampleGen):
    """Ingests the TFRecords of the newest complete spans, and checks every record.

    ``examples`` is what ImportExampleGen publishes. ``quarantine`` has ``report.json``
    and the records that were not ingested. Bad records fail nothing here: ``DataGate``
    judges them.

    It is a ``FileBasedExampleGen`` because Kubeflow's compiler gives only those the
    step that looks at their files before the cache is asked. That step is TFX's own
    driver (tfx/orchestration/kubeflow/v2/file_based_example_gen/driver.py). It reads
    ``input_config`` only, knows a window of one span, and fails when the newest span is
    not in every split yet. So a pattern with placeholders is shown to it as
    ``span-<SPAN>/train-*``, which names no file: it finds span 0 without files. The
    spans are pinned by ``spans``, or selected by the executor, and then the pipeline's
    cache must be off, since the key has nothing of the files. A pattern without
    placeholders is shown as it is: TFX's driver takes counts, sizes and times of the
    files into the key. On this machine the node's own driver does better than both.

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
          images: features whose images are looked into.
          max_record_bytes: longer records are quarantined unread.
          window: how many spans are taken, the newest complete ones.
          complete_when: when a span counts as complete.
          spans: exactly these, as ``Window.spans_json`` writes them, or a runtime
            parameter of that; "" takes what is there when the node runs.

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
