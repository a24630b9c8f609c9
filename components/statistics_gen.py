"""The ``StatisticsGen`` node: TFX's component, without Beam for data that is small.

TFDV's Beam job takes seconds for any data; its in-memory function computes the same
statistics in a fraction of a second. Only among the most frequent values of a feature
it counts all that are not UTF-8 as one.
"""

from __future__ import annotations

import os
from typing import Any

import pyarrow as pa
from tensorflow_data_validation import StatsOptions
from tensorflow_data_validation.statistics import stats_impl
from tfx.components.statistics_gen import component, executor
from tfx.components.util import tfxio_utils
from tfx.dsl.components.base import executor_spec
from tfx.types import artifact_utils
from tfx_bsl.arrow import table_util
from tfx_bsl.tfxio import dataset_options

from components.artifacts import Artifacts
from sluice.splits import split_statistics_path
from sluice.storage.digest import files_below
from sluice.storage.storage import is_remote, storage_for

# The files of all splits, compressed; all records of a split are in memory at once.
_MAX_BYTES = 100_000_000
_BATCH = dataset_options.RecordBatchesOptions(
    batch_size=10_000, num_epochs=1, shuffle=False
)
_EMPTY = pa.RecordBatch.from_pydict({})


class Executor(executor.Executor):
    """TFX's executor, replaced for examples on this machine up to a size.

    What it replaces takes neither a schema nor ``exclude_splits``.
    """

    def Do(
        self, input_dict: Artifacts, output_dict: Artifacts, exec_properties: Any
    ) -> None:
        examples = artifact_utils.get_single_instance(input_dict["examples"])
        is_large = is_remote(examples.uri) or _size_bytes(examples.uri) > _MAX_BYTES
        options_json = exec_properties.get("stats_options_json")
        if is_large or not options_json or input_dict.get("schema"):
            super().Do(input_dict, output_dict, exec_properties)
            return
        options = StatsOptions.from_json(options_json)
        statistics = artifact_utils.get_single_instance(output_dict["statistics"])
        statistics.split_names = examples.split_names
        statistics.span = examples.span
        for split in artifact_utils.decode_split_names(examples.split_names):
            source = tfxio_utils.get_split_tfxio([examples], split, ["StatisticsGen"])
            # A feature that a batch lacks is no column of it.
            batches = [*source.RecordBatches(_BATCH)]
            batch = table_util.MergeRecordBatches(batches) if batches else _EMPTY
            result = stats_impl.generate_statistics_in_memory(batch, options)
            path = split_statistics_path(statistics.uri, split)
            storage = storage_for(path)
            storage.make_folder(os.path.dirname(path))
            storage.write_atomically(path, result.SerializeToString(deterministic=True))


def _size_bytes(folder: str) -> int:
    return sum(file.size_bytes for file in files_below(folder))


class StatisticsGen(component.StatisticsGen):
    """TFX's StatisticsGen, without ``exclude_splits``; see the executor."""

    EXECUTOR_SPEC = executor_spec.BeamExecutorSpec(Executor)
