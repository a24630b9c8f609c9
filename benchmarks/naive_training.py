"""Trains the model of a pipeline on some files, with nothing around it.

Preprocessing, model and training are those that the pipeline has; there is no check of
the data or of the model, and no record of what was done. It takes a third of the time
of Transform and Trainer in processes of their own.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import apache_beam as beam
import tensorflow as tf
import tensorflow_transform as tft
from tensorflow_transform import beam as tft_beam
from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils
from tfx_bsl.tfxio import tf_example_record

from pipeline.config.config import Config
from pipeline.training.preprocessing import preprocessing_fn
from pipeline.training.run_fn import run_fn
from sample_data.tf_example import encode
from schemas import loader
from sluice.tfrecords import tfrecord


def train(config: Config, folders: Sequence[Path], output: Path) -> None:
    """Trains and exports a model.

    Args:
      config: that was validated.
      folders: each has a file of records of each split.
      output: for the model, ``output/model``, and all else; it need not exist.

    Raises:
      DataError: a file is damaged.
    """
    raw = {
        split: [x for f in folders for x in tfrecord.read(f / f"{split}.tfrecord")]
        for split in ("train", "eval")
    }
    features = config.feature_set
    schema = loader.load(config.schema_path)
    source = tf_example_record.TFExampleBeamRecord("memory", schema=schema)
    custom = {"feature_set": features.model_dump()}
    function = functools.partial(preprocessing_fn, custom_config=custom)
    graph = str(output / "transform")
    with beam.Pipeline() as steps, tft_beam.Context(temp_dir=str(output / "temporary")):
        batches = steps | beam.Create(raw["train"]) | source.BeamSource()
        data = (batches, source.TensorAdapterConfig())
        analyzed = data | tft_beam.AnalyzeDataset(function)
        _ = analyzed | tft_beam.WriteTransformFn(graph)
    metadata = dataset_metadata.DatasetMetadata(schema)
    metadata_io.write_metadata(metadata, f"{graph}/metadata")
    layer = tft.TFTransformOutput(graph).transform_features_layer()
    spec = schema_utils.schema_as_feature_spec(schema).feature_spec
    for split, records in raw.items():
        found = layer(tf.io.parse_example(records, spec))
        columns = {name: value.numpy().tolist() for name, value in found.items()}
        rows = zip(*columns.values(), strict=True)
        transformed = [encode(dict(zip(columns, row, strict=True))) for row in rows]
        tfrecord.write(output / f"{split}.gz", transformed)
    custom_config = {
        **custom,
        "train": config.train.model_dump(),
        "model": config.model_path,
        "model_params": dict(config.model_params),
        "own_preprocessing": False,
    }
    arguments = SimpleNamespace(
        custom_config=custom_config,
        transform_graph_path=graph,
        base_model=None,
        hyperparameters=None,
        train_files=[str(output / "train.gz")],
        eval_files=[str(output / "eval.gz")],
        model_run_dir=str(output / "run"),
        serving_model_dir=str(output / "model"),
    )
    run_fn(arguments)
