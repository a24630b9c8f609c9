"""Chooses how a training step is spread over the devices of this machine."""

from __future__ import annotations

from typing import Any


def choose_strategy() -> tuple[Any, str]:
    """Returns a ``tf.distribute`` strategy and one line that says which and why.

    Several GPUs train as mirrored replicas. One GPU or none trains plainly: a
    MirroredStrategy of one replica only adds overhead.
    """
    import tensorflow as tf

    gpus = tf.config.list_logical_devices("GPU")
    if len(gpus) > 1:
        return (
            tf.distribute.MirroredStrategy([gpu.name for gpu in gpus]),
            f"mirrored over {len(gpus)} GPUs, gradients are averaged at each step",
        )
    device = "one GPU" if gpus else "CPU, no accelerator found"
    return tf.distribute.get_strategy(), f"plain training on {device}"
