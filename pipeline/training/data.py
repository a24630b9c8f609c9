"""Training step 1, data: datasets of the transformed examples for train and eval."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import tensorflow as tf

from pipeline.config.feature_set import Feature, FeatureSet
from sluice.tfrecords.image_decoder import decode_image

SHUFFLE_RECORDS = 10_000


@dataclass(frozen=True)
class DataSettings:
    """Settings of ``make_datasets``.

    Attributes:
      train_files: patterns of gzip TFRecords, as Transform writes them.
      eval_files: the same for validation.
      batch_size: records per batch over all replicas; the last may be smaller.
      seed: of shuffling.
    """

    train_files: Sequence[str]
    eval_files: Sequence[str]
    batch_size: int
    seed: int


@dataclass(frozen=True)
class Datasets:
    """The datasets of a training.

    Attributes:
      make_train: returns one epoch of batches, in a new order at each iteration. Each
        call starts again with the first order, so that a resumed training can skip
        what is done.
      eval: batches for validation, always in the same order.
    """

    make_train: Callable[[], tf.data.Dataset]
    eval: tf.data.Dataset


def make_datasets(
    settings: DataSettings, feature_set: FeatureSet, tf_transform_output: Any
) -> Datasets:
    """Returns the datasets of train and eval; see ``make_dataset`` for their batches.

    Args:
      settings: files, batch size and seed.
      feature_set: the image features and the label.
      tf_transform_output: of Transform; gives the transformed feature spec.
    """
    make = functools.partial(
        make_dataset,
        tf_transform_output=tf_transform_output,
        feature_set=feature_set,
        batch_size=settings.batch_size,
    )
    return Datasets(
        make_train=functools.partial(
            make, settings.train_files, shuffle_seed=settings.seed
        ),
        eval=make(settings.eval_files),
    )


def make_dataset(
    file_patterns: Sequence[str],
    tf_transform_output: Any,
    feature_set: FeatureSet,
    *,
    batch_size: int,
    shuffle_seed: int | None = None,
) -> tf.data.Dataset:
    """Returns one epoch of ``(features, class ids)`` batches.

    Args:
      file_patterns: gzip TFRecords of transformed tf.Examples, as Transform writes.
      tf_transform_output: gives the transformed feature spec.
      feature_set: the image features and the label.
      batch_size: records per batch over all replicas; the last may be smaller.
      shuffle_seed: shuffles files and records, anew each epoch; None keeps the order.

    Returns:
      Features ``[batch, 1]``, images float32 ``[batch, height, width, channels]`` in
      0..1; class ids int64 ``[batch, 1]``.
    """
    files = tf.data.Dataset.list_files(
        list(file_patterns), shuffle=shuffle_seed is not None, seed=shuffle_seed
    )
    records = tf.data.TFRecordDataset(
        files, compression_type="GZIP", num_parallel_reads=tf.data.AUTOTUNE
    )
    options = tf.data.Options()
    options.deterministic = True
    records = records.with_options(options)
    if shuffle_seed is not None:
        records = records.shuffle(SHUFFLE_RECORDS, seed=shuffle_seed)
    spec = tf_transform_output.transformed_feature_spec()
    label_key = feature_set.label.key

    def parse(serialized: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        features = tf.io.parse_example(serialized, spec)
        labels = features.pop(label_key)
        return decode_images(features, feature_set.images), labels

    return (
        records.batch(batch_size)
        .map(parse, num_parallel_calls=tf.data.AUTOTUNE)
        .prefetch(tf.data.AUTOTUNE)
    )


def decode_images(
    features: Mapping[str, tf.Tensor], images: Mapping[str, Feature]
) -> dict[str, tf.Tensor]:
    """Replaces encoded images ``[batch, 1]`` by float32 pixels in 0..1.

    Images of another size are resized (bilinear). JPEG, PNG, GIF (first frame) and BMP
    are detected by content.
    """
    decoded = dict(features)
    for key, feature in images.items():
        height, width = feature.options["height"], feature.options["width"]
        channels = feature.options["channels"]

        def decode(
            data: tf.Tensor,
            size: tuple[int, int] = (height, width),
            channels: int = channels,
        ) -> tf.Tensor:
            pixels = tf.image.resize(decode_image(data, channels), size)
            return tf.ensure_shape(pixels, (*size, channels)) / 255.0

        decoded[key] = tf.map_fn(
            decode, tf.reshape(features[key], [-1]), fn_output_signature=tf.float32
        )
    return decoded
