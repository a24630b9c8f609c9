"""Progress of a training, and the facts about it that the record keeps."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import tensorflow as tf

from pipeline.training.callbacks import StepCallback
from pipeline.training.input.training_input import TrainingInput
from pipeline.training.keras_of import keras_of
from pipeline.training.strategy.distribution import Distribution
from sluice import progress
from sluice.storage import atomic
from sluice.storage.local_copy import local_output

FACTS_FILE = "training.json"
# Minimum time between two reports of steps, to a reader and in a service's log.
INTERVAL_S, LOG_INTERVAL_S = 1.0, 30.0


class ReportProgress(StepCallback):
    """Keras callback that reports epochs, and steps now and then.

    Rates and durations are of training without validation. The first execution of a
    ``fit``, which traces and compiles the step, is left out of rates.

    Args:
      distribution: of the training; only the chief reports.
      trial: its name, if the training is a trial of a search.

    Attributes:
      epoch_facts: ``epoch``, ``duration_s`` and ``examples_per_second`` of each
        completed epoch. A checkpoint keeps them.
      time_to_first_step_s: from the begin of ``fit`` to the end of its first execution,
        of the last one that had a step to do; None before.
    """

    def __init__(
        self,
        epochs: int,
        training_input: TrainingInput,
        distribution: Distribution,
        trial: str | None = None,
    ) -> None:
        super().__init__()
        self._epochs = epochs
        self._steps = training_input.steps_per_epoch
        self._input = training_input
        self._interval_s = INTERVAL_S if progress.is_followed() else LOG_INTERVAL_S
        self._distribution = distribution
        self._trial = {"trial": trial} if trial else {}
        self.epoch_facts: list[dict[str, Any]] = []
        self.time_to_first_step_s: float | None = None

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._train_began_s = time.monotonic()
        # Steps of all epochs, and the time, after the first execution.
        self._traced: tuple[int, float] | None = None

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._epoch = epoch
        # The rest of an epoch is a ``fit`` of fewer steps.
        self._steps_before = self._steps - self.params["steps"]
        self._began_s = self._reported_s = time.monotonic()
        # Where the rate is measured from.
        self._rated: tuple[int, float] | None = None

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        first = self._steps_before + batch
        self._rated = self._rated or (first, time.monotonic())

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        now_s = time.monotonic()
        self._step = self._steps_before + int(batch) + 1
        if self._traced is None:
            self.time_to_first_step_s = now_s - self._train_began_s
            self._traced = self._epoch * self._steps + self._step, now_s
            if self._step < self._steps:
                self._rated = self._step, now_s
        elif now_s - self._reported_s >= self._interval_s and self._step < self._steps:
            self._reported_s = now_s
            rate = self._examples_per_second(now_s)
            self._report("step", rate, step=self._step, steps=self._steps)

    def on_test_begin(self, logs: dict[str, Any] | None = None) -> None:
        now_s = time.monotonic()
        self.epoch_facts.append(
            {
                "epoch": self._epoch + 1,
                "duration_s": now_s - self._began_s,
                "examples_per_second": self._examples_per_second(now_s),
            }
        )

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._step = self._steps
        self._report(
            "epoch",
            self.epoch_facts[-1]["examples_per_second"],
            duration_s=time.monotonic() - self._began_s,
            metrics={name: float(value) for name, value in (logs or {}).items()},
        )

    def _examples_per_second(self, now_s: float) -> float:
        step, since_s = self._rated or (0, self._began_s)
        rate = (self._step - step) / max(now_s - since_s, 1e-9)
        return rate * self._input.train_examples / self._steps

    def _report(self, event: str, examples_per_second: float, **facts: Any) -> None:
        if not self._distribution.is_chief:
            return
        done = self._epoch * self._steps + self._step
        first, first_s = self._traced or (done, self._began_s)
        left = self._epochs * self._steps - done
        passed_s = time.monotonic() - first_s
        progress.report(
            event=event,
            epoch=self._epoch + 1,
            epochs=self._epochs,
            examples_per_second=examples_per_second,
            # With the time of validations.
            eta_s=passed_s / (done - first) * left if done > first else None,
            **self._trial,
            **facts,
        )


def write_facts(
    model: Any,
    reported: ReportProgress,
    training_input: TrainingInput,
    distribution: Distribution,
    directory: str,
    callbacks: Sequence[Any] = (),
) -> None:
    """Writes ``training.json``: what the record keeps of a training."""
    facts = {
        "strategy": distribution.line,
        "replicas": distribution.replicas,
        "batch_size": distribution.batch_size,
        "steps_per_execution": distribution.steps_per_execution,
        "precision": model.dtype_policy.name,
        "train_examples": training_input.train_examples,
        "eval_examples": training_input.eval_examples,
        "trainable_parameters": _count(model.trainable_weights),
        "non_trainable_parameters": _count(model.non_trainable_weights),
        "time_to_first_step_s": reported.time_to_first_step_s,
        "device_memory_peak_bytes": _device_memory_peak_bytes(),
        "chosen_epoch": _chosen_epoch(model, callbacks),
        "epochs": reported.epoch_facts,
        "layers": list(_layers(model)),
    }
    with local_output(directory) as folder:
        atomic.write_json(folder / FACTS_FILE, facts)


def _chosen_epoch(model: Any, callbacks: Sequence[Any]) -> int | None:
    """Returns the epoch, from 1, whose weights early stopping has restored."""
    for callback in callbacks:
        if (
            isinstance(callback, keras_of(model).callbacks.EarlyStopping)
            and callback.restore_best_weights
            and callback.best_weights is not None
        ):
            return callback.best_epoch + 1
    return None


def _layers(model: Any, prefix: str = "") -> Iterator[dict[str, Any]]:
    """Yields each layer of a model, those of a nested model under its name."""
    for layer in model.layers:
        name = f"{prefix}{layer.name}"
        if isinstance(layer, keras_of(model).Model):
            yield from _layers(layer, f"{name}/")
            continue
        yield {
            "name": name,
            "class": type(layer).__name__,
            "output_shape": _output_shape(layer),
            "parameters": _count(layer.weights),
            "trainable_parameters": _count(layer.trainable_weights),
        }


def _output_shape(layer: Any) -> list[int | None] | None:
    """Returns the shape; None for a layer with several outputs or of no graph."""
    try:
        return list(layer.output.shape)
    except (AttributeError, TypeError, ValueError, RuntimeError):
        return None


def _count(weights: Sequence[Any]) -> int:
    return sum(weight.shape.num_elements() for weight in weights)


def _device_memory_peak_bytes() -> int | None:
    """Returns the peak of the GPU that needed most; None without one."""
    peaks = []
    for gpu in tf.config.list_logical_devices("GPU"):
        with suppress(ValueError):  # of another worker
            peaks.append(tf.config.experimental.get_memory_info(gpu.name)["peak"])
    return max(peaks, default=None)
