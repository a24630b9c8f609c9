"""Registered kernels: whether a kind of device can run an op with its dtypes."""

from __future__ import annotations

import functools
from collections import defaultdict
from typing import Any

import tensorflow as tf
from tensorflow.python.framework import kernels


class Kernels:
    """The kernels of some kinds of devices in this installation of TensorFlow."""

    def __init__(self, *device_types: str) -> None:
        self._of_op = defaultdict(list)
        for kernel in _all_kernels():
            if kernel.device_type in device_types:
                self._of_op[kernel.op].append(
                    {
                        item.name: set(item.allowed_values.list.type)
                        for item in kernel.constraint
                    }
                )

    def missing(self, op: tf.Operation) -> str | None:
        """Returns the op's type, with its dtype if that is why; None if it can run."""
        known = self._of_op.get(op.type)
        if not known:
            return op.type
        if any(_allows(constraints, op) for constraints in known):
            return None
        names = {name for constraints in known for name in constraints}
        dtypes = [_dtypes(op, name) for name in sorted(names)]
        shown = sorted({dtype.name for group in dtypes for dtype in group})
        return f"{op.type} of {', '.join(shown)}"


def _allows(constraints: dict[str, set[int]], op: tf.Operation) -> bool:
    return all(
        dtype.as_datatype_enum in allowed
        for name, allowed in constraints.items()
        if allowed
        for dtype in _dtypes(op, name)
    )


def _dtypes(op: tf.Operation, name: str) -> list[tf.DType]:
    value = op.get_attr(name)
    values = value if isinstance(value, list) else [value]
    return [item for item in values if isinstance(item, tf.DType)]


@functools.cache
def _all_kernels() -> list[Any]:
    # There is no public list (TensorFlow 2.16 and 2.21).
    # Those of XLA are registered when it is used for the first time.
    tf.function(lambda: tf.constant(0) + 1, jit_compile=True)()
    return list(kernels.get_all_registered_kernels().kernel)
