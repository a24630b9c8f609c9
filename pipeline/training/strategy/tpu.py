"""TPUs: how to reach one, and what it can and cannot be given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import tensorflow as tf

from pipeline.training.strategy.choice import LOCAL_TPU, Tpu, check_paths
from sluice.errors import NodeError

STEPS_PER_EXECUTION = 50
_REFUSED = {
    tf.string: "turn it into numbers in the preprocessing",
    tf.float64: "cast it to float32 in the preprocessing",
}


def connect(tpu: Tpu, paths: Sequence[str]) -> tf.distribute.TPUStrategy:
    """Connects to a TPU, initializes it and returns its strategy.

    Raises:
      UsageError: the TPU is on another machine, and a path is on this one.
      NodeError: it cannot be initialized.
    """
    check_paths(tpu, paths)
    try:
        resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu.name)
        if tpu.name != LOCAL_TPU:
            tf.config.experimental_connect_to_cluster(resolver)
        tf.tpu.experimental.initialize_tpu_system(resolver)
    except (tf.errors.OpError, ValueError) as error:
        raise NodeError(
            f"the TPU {tpu.name!r} cannot be initialized",
            where=tpu.found_by,
            actual=str(error).strip().partition("\n")[0][:300],
            hint="a TPU needs a TensorFlow that is built with TPU support, on a TPU VM "
            "or with access to one; train.strategy=one_device trains without",
        ) from error
    return tf.distribute.TPUStrategy(resolver)


def check_dtypes(dtypes: Mapping[str, Any]) -> None:
    """Checks that a TPU takes the model's inputs.

    Raises:
      NodeError: one is a string or float64.
    """
    refused = {name: dtype for name, dtype in dtypes.items() if dtype in _REFUSED}
    if refused:
        raise NodeError(
            "the model has inputs that a TPU does not take",
            where="the transformed features",
            expected="float32, float16, bfloat16, integers or booleans",
            examples=[
                f"{name} is {dtype.name}: {_REFUSED[dtype]}"
                for name, dtype in refused.items()
            ],
        )
