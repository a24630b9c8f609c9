"""Batches of a training as this process reads them, whatever its strategy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import tensorflow as tf


def local_batches(batches: Any, strategy: tf.distribute.Strategy) -> Iterator[Any]:
    """Yields batches as NumPy arrays: the parts of this process' replicas, joined.

    Args:
      batches: what ``model.fit`` takes. Several workers must read equally many of them,
        or they wait for each other without end.
      strategy: of the training. With parameter servers the order is worker 0's.
    """
    if isinstance(batches, tf.keras.utils.experimental.DatasetCreator):
        batches = batches.dataset_fn(None)

    def joined(value: Any) -> np.ndarray:
        return np.concatenate(strategy.experimental_local_results(value))

    for batch in batches:
        yield tf.nest.map_structure(joined, batch)
