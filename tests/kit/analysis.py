"""Analyses and transforms rows as TFX's Transform does, with tensorflow_transform."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.config.features import FeatureSet
from sample_data.tf_example import encode
from sluice.tfrecords import tfrecord

Row = Mapping[str, Any]


def analyze(
    rows: Sequence[Row],
    spec: Mapping[str, Any],
    features: FeatureSet,
    directory: Path,
    transformed: Sequence[Row] = (),
) -> Any:
    """Returns the TFTransformOutput of ``preprocessing_fn``.

    Args:
      rows: values of each feature; one without values is left out of an example.
      spec: of ``tf.io.parse_example``.
      features: of the config.
      directory: for all files.
      transformed: rows to write, transformed, to ``transformed.gz``.
    """
    import apache_beam as beam
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import schema_utils
    from tensorflow_transform.tf_metadata.dataset_metadata import DatasetMetadata
    from tfx_bsl.coders.example_coder import RecordBatchToExamplesEncoder
    from tfx_bsl.public import tfxio

    from pipeline.training.preprocessing import preprocessing_fn

    schema = schema_utils.schema_from_feature_spec(dict(spec))
    config = {"feature_set": features.model_dump()}
    out = directory / "out"

    def read(pipeline: Any, name: str, rows: Sequence[Row]) -> Any:
        path = directory / f"{name}.gz"
        tfrecord.write(path, serialize(rows))
        source = tfxio.TFExampleRecord(str(path), schema=schema)
        data = pipeline | f"Read {name}" >> source.BeamSource()
        return data, source.TensorAdapterConfig()

    with beam.Pipeline() as pipeline, tft_beam.Context(str(directory / "tmp")):
        found = read(pipeline, "rows", rows) | tft_beam.AnalyzeDataset(
            lambda inputs: preprocessing_fn(inputs, config)
        )
        found | tft_beam.WriteTransformFn(str(out))
        raw = DatasetMetadata(schema)
        raw | tft_beam.WriteMetadata(str(out / "metadata"), pipeline)
        if transformed:
            written, metadata = (
                read(pipeline, "raw", transformed),
                found,
            ) | tft_beam.TransformDataset(output_record_batches=True)
            coder = RecordBatchToExamplesEncoder(metadata.schema)
            (
                written
                | beam.FlatMap(lambda batch: coder.encode(batch[0]))
                | beam.io.WriteToTFRecord(
                    str(directory / "transformed.gz"), shard_name_template=""
                )
            )
    return tft.TFTransformOutput(str(out))


def serialize(rows: Sequence[Row]) -> list[bytes]:
    """Returns a tf.Example per row."""
    return [
        encode({name: values for name, values in row.items() if values}) for row in rows
    ]
