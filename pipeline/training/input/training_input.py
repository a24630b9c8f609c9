"""Datasets of a training: every epoch is a function of its seed and number alone."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pipeline.config.features import FeatureSet
from pipeline.config.label import Label
from pipeline.config.train import Train
from pipeline.training.input.augment import augment
from pipeline.training.input.examples import (
    ExampleFormat,
    Examples,
    not_converted,
    raw_spec,
)
from pipeline.training.input.records import Records, count_records
from pipeline.training.strategy.distribution import Distribution
from sluice.errors import NodeError
from sluice.machine_resources import free_memory_bytes

# Workers of parameter servers are so many epochs apart; no training has as many.
_EPOCHS = 2**20
# Decoded examples may take so much: they are copied once while they are read.
_SHARE_OF_FREE_MEMORY = 1 / 3
# Batches that are made ahead.
_PREFETCHED = 4

Split = Literal["train", "eval"]


def make_input(
    train: Train,
    files: Mapping[Split, Sequence[str]],
    feature_set: FeatureSet,
    tf_transform_output: Any,
    distribution: Distribution,
    *,
    all_raw_features: bool = False,
) -> TrainingInput:
    """Returns the input of a training, whose records are counted.

    Args:
      train: the section of the config.
      files: patterns of gzip TFRecords by split, of raw examples.
      feature_set: the features and the label.
      tf_transform_output: the preprocessing.
      distribution: who reads them.
      all_raw_features: see ``examples.raw_spec``.

    Raises:
      NodeError: a split has too few records, or a weight is wrong.
    """
    servers = distribution.kind == "parameter_server"
    # Loaded in the scope, each worker has the vocabularies. Else they look up in this
    # process, and wait for each other for ever (seen with TensorFlow 2.16).
    with distribution.strategy.scope() if servers else nullcontext():
        transform = tf_transform_output.transform_features_layer()
    example_format = ExampleFormat(
        raw_spec(tf_transform_output, feature_set, all_raw_features),
        transform,
        tf_transform_output.transformed_feature_spec(),
        feature_set,
    )
    records = {
        split: count_records(
            patterns,
            example_format,
            distribution,
            by_class=split == "train" and train.class_weights == "balanced",
        )
        for split, patterns in files.items()
    }
    return TrainingInput(train, example_format, distribution, records)


class TrainingInput:
    """Batches for training and validation, as ``make_input`` returns them.

    A batch is ``(features, labels)`` or ``(features, labels, weights)``. Features are
    ``[batch, 1]``, images float32 ``[batch, height, width, channels]`` in 0..1, labels
    as ``preprocessing.label_values`` returns them, weights float32 ``[batch]``. There
    are weights where classes or examples have some.

    Several workers, and a TPU, need full batches. Their training leaves out what
    remains, other examples in each epoch. Their validation repeats examples with the
    weight 0, and the others weigh more by the share of these, since Keras divides a
    loss by all of them.
    """

    def __init__(
        self,
        train: Train,
        example_format: ExampleFormat,
        distribution: Distribution,
        records: Mapping[Split, Records],
    ) -> None:
        self._settings, self._seed = train.input, train.seed
        self._format, self._distribution = example_format, distribution
        self._records = records
        self.train_examples = records["train"].count
        self.eval_examples = records["eval"].count
        workers = distribution.workers
        self._shares = {
            split: of_split.shares(workers) for split, of_split in records.items()
        }
        self._full_batches = distribution.full_batches
        replicas = distribution.replicas // workers
        self._batches_per_step = replicas if self._full_batches else 1
        each = distribution.batch_size // workers
        self._batch_size = each // self._batches_per_step
        counts = {
            split: [share.count for share in shares]
            for split, shares in self._shares.items()
        }
        self.steps_per_epoch = math.ceil(self.train_examples / each)
        if self._full_batches:
            self.steps_per_epoch = min(counts["train"]) // each
        elif distribution.leaves_a_replica_idle(self.train_examples % each):
            self.steps_per_epoch = max(1, self.steps_per_epoch - 1)
        self.eval_steps = math.ceil(max(counts["eval"]) / each)
        if not self.steps_per_epoch or not min(counts["eval"]):
            raise NodeError(
                "there are not enough examples for a step of all workers: "
                f"{self.train_examples} to train, {self.eval_examples} to validate. "
                "Reduce train.batch_size or the number of workers",
                where=records["train"].files[0],
            )
        label = example_format.feature_set.label
        self._class_weights = _class_weights(
            train.class_weights, label, records["train"].class_counts
        )
        self.cache = self._choose_cache()
        self._memory: dict[tuple[Split, int], Examples] = {}

    def train(self, epoch: int = 0, batch: int = 0) -> Any:
        """Returns the batches of all epochs from a position on, without end.

        For ``model.fit`` with ``steps_per_epoch``.

        Args:
          epoch: number of completed epochs.
          batch: number of completed batches of the next one.
        """

        def make(worker: Any) -> tf.data.Dataset:
            if self._distribution.asynchronous_workers:
                # They read all, each in the order of epochs of its own.
                return self._dataset("train", 0, epoch + worker * _EPOCHS, batch)
            dataset = self._dataset("train", worker, epoch, batch)
            if self._distribution.workers == 1:
                return dataset
            # Otherwise workers ask each other before each step whether all go on.
            return dataset.apply(
                tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY)
            )

        return self._distributed(make)

    def eval(self) -> Any:
        """Returns the batches of one validation, always in the same order."""

        def make(worker: Any) -> tf.data.Dataset:
            if not (workers := self._distribution.asynchronous_workers):
                steps = self.eval_steps * self._batches_per_step
                known = tf.data.experimental.assert_cardinality(steps)
                return self._dataset("eval", worker).apply(known)
            # Each worker begins elsewhere: at an equal pace, they read all together.
            dataset = self._dataset("eval", 0)
            first = worker * self.eval_steps // workers
            return dataset.skip(first).concatenate(dataset.take(first))

        return self._distributed(make)

    def target_statistics(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns mean and standard deviation, ``[targets]``, of a regression's label.

        Every worker reads all examples of the train split.

        Raises:
          NodeError: all labels are equal.
        """
        key = self._format.feature_set.label.key
        chunks = self._records["train"].read().batch(self._format.chunk_size)
        parsed = chunks.map(not_converted(lambda x: self._format.transformed(x)[key]))
        labels = np.concatenate([*parsed.as_numpy_iterator()]).astype(np.float64)
        mean, where = labels.mean(axis=0), self._records["train"].files[0]
        deviation = labels.std(axis=0)
        if not deviation.all():
            what = f"the label of all {len(labels):,} examples to train is {labels[0]}"
            raise NodeError(f"{what}: there is nothing to learn", where=where)
        return mean, deviation

    def first_features(self) -> Examples:
        """Returns the features of this process' first batch for training."""
        return next(iter(self._dataset("train", self._distribution.worker)))[0]

    def _distributed(self, make: Callable[[Any], tf.data.Dataset]) -> Any:
        """Returns what ``model.fit`` takes, from a function of the worker's number.

        It is a tensor with parameter servers, else an integer.
        """
        kind = self._distribution.kind

        def make_prefetched(context: Any = None) -> tf.data.Dataset:
            worker = context.input_pipeline_id if context else 0
            if kind == "parameter_server":  # The number in its contexts is always 0.
                coordinator = tf.distribute.coordinator
                worker = coordinator.experimental_get_current_worker_index()
            dataset = make(worker)
            options = tf.data.Options()
            # Its thread waits by the wall clock, and the end of training for it: for a
            # day, if the clock is set back by one (seen with TensorFlow 2.16).
            options.autotune.enabled = False
            return dataset.prefetch(_PREFETCHED).with_options(options)

        if self._full_batches:
            strategy = self._distribution.strategy
            return strategy.distribute_datasets_from_function(make_prefetched)
        if kind == "parameter_server":
            return tf.keras.utils.experimental.DatasetCreator(make_prefetched)
        return make_prefetched()

    def _dataset(
        self, split: Split, worker: int, epoch: int = 0, step: int = 0
    ) -> tf.data.Dataset:
        """Returns the batches of a worker from a position on, not distributed.

        Args:
          split: ``train``, without end, or ``eval``.
          worker: number of the worker.
          epoch: number of the first epoch.
          step: number of its first step.
        """
        share, training = self._shares[split][worker], split == "train"
        steps = self.steps_per_epoch if training else self.eval_steps
        batches, first = steps * self._batches_per_step, step * self._batches_per_step
        in_memory = self.cache == "memory"
        examples = self._examples(split, worker) if in_memory else {}

        @not_converted
        def one_epoch(number: tf.Tensor) -> tf.data.Dataset:
            begin = tf.where(number == epoch, tf.constant(first, tf.int64), 0)
            numbers = tf.data.Dataset.range(begin, batches)
            of_epoch = tf.data.Dataset.from_tensors(number).repeat()
            if in_memory:
                return tf.data.Dataset.zip((numbers, of_epoch))
            read = self._read(split, share, number).skip(begin)
            return tf.data.Dataset.zip((numbers, of_epoch, read))

        def load(at: tf.Tensor, number: tf.Tensor, *read: tf.Tensor) -> Any:
            if in_memory:
                indices = self._indices(split, share.count, at, number)
                batch = {key: tf.gather(x, indices) for key, x in examples.items()}
            else:
                batch = self._format.parse(*read)
            return self._finish(split, share.count, [number, at, worker], batch)

        epochs = tf.data.Dataset.counter(epoch)
        epochs = epochs if training else epochs.take(1)
        return epochs.flat_map(one_epoch).map(
            not_converted(load), num_parallel_calls=tf.data.AUTOTUNE, deterministic=True
        )

    def _examples(self, split: Split, worker: int) -> Examples:
        """Returns all examples of a worker, a variable per feature, in their order.

        Unlike ``tf.data``'s cache, these give whole batches in any order: the shuffle
        is complete, has no buffer, and a resumed epoch skips nothing. They are
        variables, since tf.data copies constants when it optimizes a dataset.
        """
        if (split, worker) not in self._memory:
            records = self._shares[split][worker].read()
            with tf.device("CPU:0"), ThreadPoolExecutor() as threads:
                # Not by tf.data, which takes more than half as much time again.
                chunks = records.batch(self._format.chunk_size)
                parsed = list(threads.map(self._format.parse_on_cpu, chunks))
                self._memory[split, worker] = {
                    name: tf.Variable(tf.concat([chunk[name] for chunk in parsed], 0))
                    for name in self._format.parsed_spec
                }
        return self._memory[split, worker]

    def _indices(
        self, split: Split, count: int, at: tf.Tensor, number: tf.Tensor
    ) -> tf.Tensor:
        """Returns which examples make a batch of an epoch."""
        start = at * self._batch_size
        end = start + self._batch_size
        if not self._full_batches:
            end = tf.minimum(end, count)
        indices = tf.range(start, end) % count
        if split == "eval":
            return indices
        return tf.random.experimental.index_shuffle(
            indices, seed=[self._seed, number], max_index=count - 1
        )

    def _read(self, split: Split, share: Records, number: tf.Tensor) -> tf.data.Dataset:
        """Returns the batches of an epoch, of serialized examples."""
        if split == "train":
            # Operations combine their seed with this one, whatever it is elsewhere.
            # TensorFlow takes it modulo 2**31 - 1; 0 fails beside a tensor.
            tf.random.set_seed(self._seed % (2**31 - 2) + 1)
            size = self._settings.shuffle_mb * 1_000_000 // share.bytes
            buffer = min(share.count, max(1, size))
            records = share.read(number).shuffle(
                buffer, seed=number, reshuffle_each_iteration=False
            )
        else:
            records = share.read()
            if self._full_batches:
                records = records.repeat()
        return records.batch(self._batch_size, drop_remainder=self._full_batches)

    def _finish(
        self, split: Split, count: int, position: Sequence[Any], examples: Examples
    ) -> tuple[Any, ...]:
        """Makes a batch of decoded examples.

        Args:
          split: of the batch.
          count: number of its worker's examples.
          position: epoch, number of the batch, worker.
          examples: decoded.
        """
        if self._full_batches:
            examples = {
                name: tf.ensure_shape(value, [self._batch_size, *value.shape[1:]])
                for name, value in examples.items()
            }
        features, labels, weights = self._format.split(examples)
        factors = [] if weights is None else [weights]
        if split == "train":
            features = self._augmented(features, position)
            if self._class_weights is not None:
                # Labels that belong to no class are -1.
                ids = tf.maximum(labels[:, 0], 0)
                factors.append(tf.gather(tf.constant(self._class_weights), ids))
        elif self._full_batches:
            numbers = position[1] * self._batch_size + tf.range(
                self._batch_size, dtype=tf.int64
            )
            total = self.eval_steps * self._distribution.batch_size
            share = tf.cast(numbers < count, tf.float32)
            factors.append(share * (total / self.eval_examples))
        if not factors:
            return features, labels
        return features, labels, functools.reduce(tf.multiply, factors)

    def _augmented(self, features: Examples, position: Sequence[Any]) -> Examples:
        settings, images = self._settings.augment, self._format.feature_set.images
        if not any(settings.model_dump().values()):
            return features
        changed = dict(features)
        for number, key in enumerate(images):
            seed = tf.constant([self._seed, number], tf.int64)
            for place in position:
                seed = tf.random.fold_in(seed, place)
            changed[key] = augment(features[key], settings, seed)
        return changed

    def _choose_cache(self) -> str:
        if self._distribution.kind == "parameter_server":
            return "none"  # Its workers cannot reach what is in this process.
        if self._settings.cache != "auto":
            return self._settings.cache
        worker = self._distribution.worker
        size = sum(
            shares[worker].count * self._format.example_bytes(shares[worker].bytes)
            for shares in self._shares.values()
        )
        fits = size < _SHARE_OF_FREE_MEMORY * free_memory_bytes()
        return "memory" if fits else "none"


def _class_weights(
    setting: str | Mapping[str | int, float] | None, label: Label, counts: Sequence[int]
) -> list[float] | None:
    """Returns the weight of each class by its id; None if all are 1.

    ``balanced`` is the mean count of the classes that occur, divided by each one's
    count, as in scikit-learn's ``compute_class_weight``.
    """
    if setting is None:
        return None
    if isinstance(setting, Mapping):
        # Keys become strings in a node's parameters.
        by_name = {str(name): weight for name, weight in setting.items()}
        return [by_name.get(name, 1.0) for name in label.class_names]
    present = sum(count > 0 for count in counts)
    return [sum(counts) / present / count if count else 1.0 for count in counts]
