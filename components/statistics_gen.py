"""The ``StatisticsGen`` node: TFX's component, without Beam for data on this machine.

TFDV's Beam job takes seconds for any data. Its combiners compute the same statistics
without Beam, here of one shard after another, in a process per core. Only among the
most frequent values of a feature they count all that are not UTF-8 as one. Brightness
and size of images are counted here alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import Any

from tensorflow_data_validation import StatsOptions
from tensorflow_data_validation.statistics import stats_impl
from tfx.components.statistics_gen import component, executor
from tfx.components.util import tfxio_utils
from tfx.dsl.components.base import executor_spec
from tfx.types import artifact_utils
from tfx_bsl.tfxio import dataset_options

from components.artifacts import Artifacts
from schemas.image_statistics import Measured, add_measures, measure
from sluice.beam_options import ENGINE_RUNNER
from sluice.forked_calls import run_forked
from sluice.machine_resources import data_workers
from sluice.patches.tfdv import limit_quantiles
from sluice.splits import split_statistics_path
from sluice.storage.digest import files_below
from sluice.storage.storage import is_remote, storage_for

_BATCH = dataset_options.RecordBatchesOptions(
    batch_size=10_000, num_epochs=1, shuffle=False
)


class Executor(executor.Executor):
    """TFX's executor, replaced where neither a bucket nor an engine has the work.

    What it replaces takes neither a schema nor ``exclude_splits``. The result does not
    depend on the number of cores.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        options_json = exec_properties.get("stats_options_json")
        on_engine = ENGINE_RUNNER in self._beam_pipeline_args
        is_elsewhere = is_remote(examples.uri) or on_engine
        if is_elsewhere or not options_json or input_dict.get("schema"):
            super().Do(input_dict, output_dict, exec_properties)
            return
        statistics = artifact_utils.get_single_instance(output_dict["statistics"])
        statistics.split_names = examples.split_names
        statistics.span = examples.span
        splits = artifact_utils.decode_split_names(examples.split_names)
        shards = [
            (split, file.uri)
            for split in splits
            for file in files_below(artifact_utils.get_split_uri([examples], split))
        ]
        of_shard = partial(_of_shard, [examples], options_json)
        found = run_forked(of_shard, shards, data_workers())
        options = StatsOptions.from_json(options_json)
        limit_quantiles(options.num_quantiles_histogram_buckets)
        combiners: Any = stats_impl.get_generators(options, in_memory=True)
        for split in splits:
            parts = [x for (of, _), x in zip(shards, found, strict=True) if of == split]
            by_combiner = zip(*(part for part, _ in parts), strict=True)
            merged = [
                combiner.merge_accumulators(accumulators)
                for combiner, accumulators in zip(combiners, by_combiner, strict=True)
            ]
            result = stats_impl.extract_statistics_output(merged, combiners)
            add_measures(result, [x for _, measured in parts for x in measured])
            path = split_statistics_path(statistics.uri, split)
            storage = storage_for(path)
            storage.make_folder(os.path.dirname(path))
            storage.write_atomically(path, result.SerializeToString(deterministic=True))


def _of_shard(
    examples: Sequence[Any], options_json: str, shard: tuple[str, str]
) -> tuple[list[Any], list[Measured]]:
    """Returns what each of TFDV's combiners has accumulated of a shard, and images."""
    options = StatsOptions.from_json(options_json)
    combiners: Any = stats_impl.get_generators(options, in_memory=True)
    source = tfxio_utils.get_tfxio_factory_from_artifact(examples, ["StatisticsGen"])
    accumulators = [combiner.create_accumulator() for combiner in combiners]
    measured = []
    for batch in source(shard[1]).RecordBatches(_BATCH):
        measured.append(measure(batch))
        accumulators = [
            combiner.add_input(accumulator, batch)
            for combiner, accumulator in zip(combiners, accumulators, strict=True)
        ]
    compact = [x.compact(y) for x, y in zip(combiners, accumulators, strict=True)]
    return compact, measured


class StatisticsGen(component.StatisticsGen):
    """TFX's StatisticsGen, without ``exclude_splits``; see the executor."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
