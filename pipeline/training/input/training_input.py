"""Datasets of a training: every epoch is a function of its seed and number alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from pipeline.config.feature_set import FeatureSet
from pipeline.training.input.images import decode_images
from pipeline.training.input.shards import Shards, count_records, read

_ENDLESS = tf.int64.max


@dataclass(frozen=True)
class InputSettings:
    """Settings of ``make_input``.

    Attributes:
      train_files: patterns of gzip TFRecords, as Transform writes them.
      eval_files: the same for validation.
      seed: of shuffling and augmenting.
      cache: ``auto``, ``memory``, ``disk`` or ``none``; see ``pipeline.config.train``.
      shuffle_mb: size of the shuffle buffer, in 1,000,000 bytes.
      augment: see ``pipeline.config.train.Augment``.
      class_weights: by class; ``balanced``: inversely to its share; None: 1.
      sample_weight: name of the feature with the weight of each example; None: 1.
    """

    train_files: Sequence[str]
    eval_files: Sequence[str]
    seed: int = 0
    cache: str = "auto"
    shuffle_mb: int = 256
    augment: Mapping[str, Any] = field(default_factory=dict)
    class_weights: str | Mapping[str | int, float] | None = None
    sample_weight: str | None = None


def make_input(
    settings: InputSettings,
    feature_set: FeatureSet,
    tf_transform_output: Any,
    distribution: Any,
) -> TrainingInput:
    """Returns the input of a training, whose records are counted.

    Args:
      settings: files, seed and how they are read.
      feature_set: the features and the label.
      tf_transform_output: of Transform; gives the transformed feature spec.
      distribution: gives the global batch size.

    Raises:
      NodeError: a split has no records.
    """
    return TrainingInput(
        settings,
        feature_set,
        tf_transform_output.transformed_feature_spec(),
        distribution,
        count_records(settings.train_files),
        count_records(settings.eval_files),
    )


class TrainingInput:
    """Batches for training and validation, as ``make_input`` returns them.

    A batch is ``(features, class ids [batch, 1])``. Features are ``[batch, 1]``, images
    float32 ``[batch, height, width, channels]`` in 0..1.

    Attributes:
      train_examples: number of examples of an epoch.
      eval_examples: number of examples of a validation.
      steps_per_epoch: number of batches of an epoch.
      eval_steps: number of batches of a validation.
    """

    def __init__(
        self,
        settings: InputSettings,
        feature_set: FeatureSet,
        spec: Mapping[str, Any],
        distribution: Any,
        train: Shards,
        evaluation: Shards,
    ) -> None:
        self._settings = settings
        self._feature_set = feature_set
        self._spec = dict(spec)
        self._batch_size = distribution.batch_size
        self._train, self._eval = train, evaluation
        self.train_examples = sum(train.records)
        self.eval_examples = sum(evaluation.records)
        self.steps_per_epoch = math.ceil(self.train_examples / self._batch_size)
        self.eval_steps = math.ceil(self.eval_examples / self._batch_size)

    @property
    def element_spec(self) -> Any:
        """Specs of a batch of ``train``."""
        return self.train().element_spec

    def train(self, epoch: int = 0, batch: int = 0) -> tf.data.Dataset:
        """Returns the batches of all epochs from a position on, without end.

        For ``model.fit`` with ``steps_per_epoch``.

        Args:
          epoch: number of completed epochs.
          batch: number of completed batches of the next one.
        """
        shuffle_bytes = self._settings.shuffle_mb * 1_000_000
        buffer = min(self.train_examples, shuffle_bytes // self._train.record_bytes)

        def one_epoch(number: tf.Tensor) -> tf.data.Dataset:
            # Seeds of operations are combined with this one, whatever it is elsewhere.
            tf.random.set_seed(self._settings.seed)
            records = read(self._train, order=number).shuffle(
                buffer, seed=number, reshuffle_each_iteration=False
            )
            done = tf.where(number == epoch, tf.constant(batch, tf.int64), 0)
            return records.batch(self._batch_size).skip(done)

        epochs = tf.data.Dataset.range(epoch, _ENDLESS)
        return self._parsed(epochs.flat_map(one_epoch))

    def eval(self) -> tf.data.Dataset:
        """Returns the batches of one validation, always in the same order."""
        return self._parsed(read(self._eval).batch(self._batch_size))

    def _parsed(self, batches: tf.data.Dataset) -> tf.data.Dataset:
        parsed = batches.map(
            self._parse, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )
        return parsed.prefetch(tf.data.AUTOTUNE)

    def _parse(self, serialized: tf.Tensor) -> tuple[dict[str, tf.Tensor], tf.Tensor]:
        features = tf.io.parse_example(serialized, self._spec)
        labels = features.pop(self._feature_set.label.key)
        return decode_images(features, self._feature_set.images), labels
