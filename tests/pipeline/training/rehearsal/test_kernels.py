"""The registry of kernels agrees with what XLA does when an op is executed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.tf


def _lookup(tf: Any) -> tuple[Callable[..., Any], Any]:
    values = tf.lookup.KeyValueTensorInitializer([1, 2], [3, 4])
    return tf.lookup.StaticHashTable(values, 0).lookup, tf.constant([1, 2])


# A function and its argument.
CASES: dict[str, Callable[[Any], tuple[Callable[..., Any], Any]]] = {
    "add": lambda tf: (lambda x: x + 1, tf.ones(2)),
    "add strings": lambda tf: (lambda x: x + x, tf.constant(["a"])),
    "as_string": lambda tf: (tf.strings.as_string, tf.ones(2)),
    "equal": lambda tf: (lambda x: tf.equal(x, x), tf.ones(2)),
    "equal strings": lambda tf: (lambda x: tf.equal(x, x), tf.constant(["a"])),
    "lookup": _lookup,
    "matmul of doubles": lambda tf: (lambda x: x @ x, tf.eye(2, dtype=tf.float64)),
    "print": lambda tf: (lambda x: (tf.print(x), x)[1], tf.ones(2)),
    "py_function": lambda tf: (
        lambda x: tf.py_function(tf.abs, [x], tf.float32),
        tf.ones(2),
    ),
    "resize bicubic": lambda tf: (
        lambda x: tf.image.resize(x, (2, 2), "bicubic"),
        tf.ones([1, 4, 4, 1]),
    ),
    "resize bilinear": lambda tf: (
        lambda x: tf.image.resize(x, (2, 2)),
        tf.ones([1, 4, 4, 1]),
    ),
    "sort": lambda tf: (tf.sort, tf.ones(2)),
    "unique": lambda tf: (lambda x: tf.unique(x).y, tf.ones(2)),
    "unused": lambda tf: (lambda x: (tf.strings.as_string(x), x)[1], tf.ones(2)),
    "where": lambda tf: (lambda x: tf.where(x > 1), tf.ones(2)),
}


@pytest.mark.parametrize("case", CASES)
def test_an_op_without_a_kernel_is_one_that_xla_refuses(case):
    import tensorflow as tf

    from pipeline.training.rehearsal.kernels import Kernels

    function, argument = CASES[case](tf)
    compiled = tf.function(function, jit_compile=True)
    ops = compiled.get_concrete_function(argument).graph.get_operations()
    try:
        compiled(argument)
        refused = False
    except tf.errors.OpError:
        refused = True

    kernels = Kernels("XLA_CPU_JIT")
    missing = [kernels.missing(op) for op in ops if op.type != "Placeholder"]

    assert any(missing) == refused, missing
