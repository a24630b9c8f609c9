"""Datasets of a training: every epoch is a function of its seed and number alone."""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import tensorflow as tf

from pipeline.config.features import FeatureSet, Label
from pipeline.config.train import Train
from pipeline.training.input.augment import augment
from pipeline.training.input.batches import Batches, BatchSettings
from pipeline.training.input.examples import ExampleFormat, Examples, example_bytes
from pipeline.training.input.plan import BY_REPLICA, Plan, divide
from pipeline.training.input.shards import count_records
from pipeline.training.input.wait_time import WaitTime
from pipeline.training.strategy.distribution import Distribution
from sluice.machine_resources import free_memory_bytes

# Between those of two workers of parameter servers; more than any training has.
_EPOCHS = 2**20
_SHARE_OF_FREE_MEMORY = 0.5
# Of serialized records, between counting and decoding.
_KEPT_SHARE_OF_FREE_MEMORY = 0.2
# Batches that are made ahead.
_PREFETCHED = 4

Split = Literal["train", "eval"]


def make_input(
    train: Train,
    files: Mapping[Split, Sequence[str]],
    feature_set: FeatureSet,
    tf_transform_output: Any,
    distribution: Distribution,
) -> TrainingInput:
    """Returns the input of a training, whose records are counted.

    Args:
      train: the section of the config.
      files: patterns of gzip TFRecords by split, as Transform writes them.
      feature_set: the features and the label.
      tf_transform_output: of the Transform that wrote them.
      distribution: who reads them.

    Raises:
      NodeError: a split has fewer records than workers, or a weight is wrong.
    """
    spec = tf_transform_output.transformed_feature_spec()
    example_format = ExampleFormat(spec, feature_set)
    may_cache = train.input.cache in ("auto", "memory") and distribution.workers == 1
    of_train, of_eval = count_records(
        [files["train"], files["eval"]],
        example_format,
        by_class=train.class_weights == "balanced",
        keep_bytes=int(may_cache * _KEPT_SHARE_OF_FREE_MEMORY * free_memory_bytes()),
    )
    return TrainingInput(
        train,
        example_format,
        distribution,
        {
            "train": divide(of_train, distribution, drop=True),
            "eval": divide(of_eval, distribution, drop=False),
        },
        of_train.class_counts,
    )


class TrainingInput:
    """Batches for training and validation, as ``make_input`` returns them.

    A batch is ``(features, class ids)`` or ``(features, class ids, weights)``. Features
    are ``[batch, 1]``, images float32 ``[batch, height, width, channels]`` in 0..1,
    class ids int64 ``[batch, 1]``, weights float32 ``[batch]``. There are weights where
    classes or examples have some, and where batches are padded: with several workers,
    so that all make the same number of steps, and in validation with static shapes.
    Those of padding are 0, and the others are larger by its share.
    Training with static shapes leaves out the examples of an incomplete last batch,
    other ones in each epoch.
    """

    def __init__(
        self,
        train: Train,
        example_format: ExampleFormat,
        distribution: Distribution,
        plans: Mapping[Split, Plan],
        class_counts: list[int] | None,
    ) -> None:
        self._settings, self._seed = train.input, train.seed
        self._format = example_format
        self._distribution, self._plans = distribution, plans
        self.train_examples = sum(share.count for share in plans["train"].shares)
        self.eval_examples = sum(share.count for share in plans["eval"].shares)
        self.steps_per_epoch = plans["train"].steps
        self.eval_steps = plans["eval"].steps
        label = example_format.feature_set.label
        self._class_weights = _class_weights(train.class_weights, label, class_counts)
        self.cache = self._choose_cache()
        if self.cache != "memory":
            for share in (*plans["train"].shares, *plans["eval"].shares):
                share.kept.clear()
        self._batches: dict[tuple[Split, int], Batches] = {}
        self._folder: tempfile.TemporaryDirectory | None = None
        is_alone = distribution.kind == "one_device"
        self._wait = WaitTime() if is_alone and WaitTime.is_measurable() else None

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

        dataset = self._distributed(make)
        return dataset if self._wait is None else self._wait.measured(dataset)

    def eval(self) -> Any:
        """Returns the batches of one validation, always in the same order."""

        def make(worker: Any) -> tf.data.Dataset:
            if not (workers := self._distribution.asynchronous_workers):
                return self._dataset("eval", worker)
            # Each worker begins elsewhere: at an equal pace, they read all together.
            dataset = self._dataset("eval", 0)
            first = worker * self.eval_steps // workers
            return dataset.skip(first).concatenate(dataset.take(first))

        return self._distributed(make)

    def read(self, split: Split, epoch: int = 0, step: int = 0) -> Iterator[Any]:
        """Yields what this process' replicas take at each step, as NumPy arrays.

        Other workers need not do the same. With parameter servers, the order is that of
        worker 0.

        Args:
          split: ``train``, without end, or ``eval``.
          epoch: number of completed epochs.
          step: number of the first step.
        """
        worker = self._distribution.worker
        # Training may be filling the cache.
        dataset = self._dataset(split, worker, epoch, step, cached=False)
        batches = dataset.as_numpy_iterator()
        count = self._plans[split].batches_per_step
        while parts := list(itertools.islice(batches, count)):
            yield tf.nest.map_structure(lambda *each: np.concatenate(each), *parts)

    def waited_s(self) -> float | None:
        """Returns for how long training has waited for batches so far, in seconds.

        None where several devices or processes share the batches, and where operations
        are deterministic.
        """
        return None if self._wait is None else float(self._wait.seconds.numpy())

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

        if kind in BY_REPLICA:
            strategy = self._distribution.strategy
            return strategy.distribute_datasets_from_function(make_prefetched)
        if kind == "parameter_server":
            return tf.keras.utils.experimental.DatasetCreator(make_prefetched)
        return make_prefetched()

    def _dataset(
        self,
        split: Split,
        worker: int,
        epoch: int = 0,
        step: int = 0,
        *,
        cached: bool = True,
    ) -> tf.data.Dataset:
        """Returns the batches of a worker from a position on, not distributed."""
        return self._batches_of(split, worker).dataset(
            functools.partial(self._finish, split, worker),
            epoch=epoch,
            skip=step * self._plans[split].batches_per_step,
            endless=split == "train",
            cached=cached,
        )

    def _batches_of(self, split: Split, worker: int) -> Batches:
        if (split, worker) not in self._batches:
            cache: str | Path = self.cache
            if cache == "disk":
                # Removed with this object, or when the process ends.
                self._folder = self._folder or tempfile.TemporaryDirectory()
                cache = Path(self._folder.name, f"{split}-{worker}")
                cache.mkdir()
            plan, settings = self._plans[split], self._settings
            batch_settings = BatchSettings(
                batch_size=plan.batch_size,
                total=plan.total,
                cache=cache,
                seed=self._seed if split == "train" else None,
                shuffle_bytes=settings.shuffle_mb * 1_000_000,
            )
            batches = Batches(plan.shares[worker], self._format, batch_settings)
            self._batches[split, worker] = batches
        return self._batches[split, worker]

    def _finish(
        self,
        split: Split,
        worker: int,
        epoch: tf.Tensor,
        step: tf.Tensor,
        examples: Examples,
    ) -> tuple[Any, ...]:
        """Makes a batch of decoded examples."""
        plan = self._plans[split]
        features, labels, weights = self._format.split(examples)
        factors = [] if weights is None else [weights]
        if split == "train":
            features = self._augmented(features, [epoch, step, worker])
            if self._class_weights is not None:
                # Labels that belong to no class are -1.
                ids = tf.maximum(labels[:, 0], 0)
                factors.append(tf.gather(tf.constant(self._class_weights), ids))
        if plan.is_padded:
            first = step * plan.batch_size
            numbers = first + tf.range(plan.batch_size, dtype=tf.int64)
            real = numbers < plan.shares[worker].count
            # Keras divides the loss of a step by its examples, padding included.
            by_step = split == "train"
            scale = plan.step_scale(step) if by_step else plan.epoch_scale
            factors.append(scale * tf.cast(real, tf.float32))
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
            for item in position:
                seed = tf.random.fold_in(seed, item)
            changed[key] = augment(features[key], settings, seed)
        return changed

    def _choose_cache(self) -> str:
        if self._distribution.kind == "parameter_server":
            return "none"  # Its workers cannot reach what is in this process.
        if self._settings.cache != "auto":
            return self._settings.cache
        spec = self._format.parsed_spec
        size = sum(
            share.count * example_bytes(spec, share.record_bytes)
            for plan in self._plans.values()
            for share in (plan.shares[self._distribution.worker],)
        )
        fits = size < _SHARE_OF_FREE_MEMORY * free_memory_bytes()
        return "memory" if fits else "none"


def _class_weights(
    given: str | Mapping[str | int, float] | None,
    label: Label,
    counts: Sequence[int] | None,
) -> list[float] | None:
    """Returns the weight of each class by its id; None if all are 1.

    ``balanced`` is the mean count of the classes that occur, divided by each one's
    count, as in scikit-learn's ``compute_class_weight``.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        # Keys become strings in a node's parameters.
        by_name = {str(name): weight for name, weight in given.items()}
        return [by_name.get(name, 1.0) for name in label.class_names]
    assert counts is not None
    present = sum(count > 0 for count in counts)
    return [sum(counts) / present / count if count else 1.0 for count in counts]
