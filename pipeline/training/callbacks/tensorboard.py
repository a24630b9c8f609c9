"""What is written for TensorBoard."""

from __future__ import annotations

import os
from typing import Any

import tensorflow as tf

from pipeline.config.train import TensorBoard
from pipeline.training.input.training_input import TrainingInput

# The first steps are slower, as they trace and compile.
_FIRST_PROFILED_STEP = 10


def make_tensorboard(
    settings: TensorBoard, directory: str
) -> tf.keras.callbacks.TensorBoard:
    """Returns Keras' callback, which writes the metrics of each epoch."""
    steps = settings.profile
    last = _FIRST_PROFILED_STEP + steps - 1
    return tf.keras.callbacks.TensorBoard(
        directory,
        histogram_freq=settings.histograms,
        write_graph=settings.graph,
        profile_batch=(_FIRST_PROFILED_STEP, last) if steps else 0,
    )


class ImageLog(tf.keras.callbacks.Callback):
    """Writes images of the first batch, as the model sees them: augmented."""

    def __init__(
        self, training_input: TrainingInput, directory: str, count: int
    ) -> None:
        super().__init__()
        self._input, self._directory, self._count = training_input, directory, count

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if epoch > 0:
            return
        features = self._input.first_features()
        writer = tf.summary.create_file_writer(os.path.join(self._directory, "images"))
        with writer.as_default(step=0):
            for name, value in features.items():
                if value.ndim == 4:
                    tf.summary.image(name, value, max_outputs=self._count)
        writer.close()
