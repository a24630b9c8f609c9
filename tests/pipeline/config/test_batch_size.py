"""Batch sizes: of all replicas and of each one."""

from __future__ import annotations

import random

import pytest

from pipeline.config.batch_size import (
    DEFAULT_BATCH_SIZE,
    batch_note,
    global_batch_size,
)
from sluice.errors import NodeError

pytestmark = pytest.mark.unit


def test_the_batch_is_given_for_all_replicas_or_for_each():
    assert global_batch_size(None, None, 1) == DEFAULT_BATCH_SIZE
    assert global_batch_size(96, None, 4) == 96
    assert global_batch_size(None, 96, 4) == 384


@pytest.mark.parametrize("multiple", [1, 8])
def test_any_batch_divides_evenly_or_the_nearest_that_do_are_named(multiple):
    draw = random.Random(3)
    for _ in range(300):
        size, replicas = draw.randint(1, 400), draw.randint(1, 9)
        divisor = replicas * multiple
        if size % divisor == 0:
            assert global_batch_size(size, None, replicas, multiple=multiple) == size
            continue
        with pytest.raises(NodeError) as failure:
            global_batch_size(size, None, replicas, multiple=multiple)
        good = [n for n in range(1, 2 * size + divisor) if n % divisor == 0]
        below = [f"train.batch_size={n}" for n in good if n < size][-1:]
        above = [f"train.batch_size={n}" for n in good if n > size][:1]
        assert failure.value.hint == " or ".join(below + above)


def test_a_tpu_needs_multiples_of_8_on_each_replica():
    with pytest.raises(NodeError) as failure:
        global_batch_size(None, 20, 8, multiple=8)
    assert str(failure.value) == (
        "train.batch_per_replica 20 is not a multiple of 8 examples (TPU)\n"
        "  where:    train.batch_per_replica\n"
        "  try:      train.batch_per_replica=16 or train.batch_per_replica=24"
    )
    with pytest.raises(NodeError, match="of 8 replicas x 8 examples \\(TPU\\)"):
        global_batch_size(100, None, 8, multiple=8)


def test_a_tpu_is_used_best_by_multiples_of_128():
    assert batch_note(256) is None
    assert batch_note(8) == (
        "8 examples per replica; a multiple of 128 would use the TPU better"
    )
