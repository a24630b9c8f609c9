"""The order of examples, and what of it depends on nothing but seed and position."""

from __future__ import annotations

from itertools import chain

import pytest

from sample_data.tf_example import encode
from sluice.errors import NodeError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf

EXAMPLES, STEPS = 51, 7
ALL = [float(number) for number in range(EXAMPLES)]


@pytest.mark.parametrize("cache", ["none", "memory"])
def test_an_epoch_has_each_example_once_in_an_order_of_its_own(
    input_of, numbers_in, cache
):
    batches = numbers_in(input_of(cache=cache).train().take(3 * STEPS))
    epochs = [batches[start : start + STEPS] for start in (0, STEPS, 2 * STEPS)]
    assert [len(batch) for batch in epochs[1]] == [8] * 6 + [3]
    orders = [list(chain(*epoch)) for epoch in epochs]
    assert all(sorted(order) == ALL for order in orders)
    assert len(set(map(tuple, orders))) == 3
    assert ALL not in orders


def test_the_order_depends_on_the_seed_and_on_no_other_state(input_of, numbers_in):
    import tensorflow as tf

    made = input_of(seed=3)
    first = numbers_in(made.train().take(STEPS))
    tf.random.set_seed(99)
    assert numbers_in(made.train().take(STEPS)) == first
    assert numbers_in(input_of(seed=3).train().take(STEPS)) == first
    assert numbers_in(input_of(seed=4).train().take(STEPS)) != first


@pytest.mark.parametrize("cache", ["none", "memory"])
def test_training_goes_on_from_any_position(input_of, numbers_in, cache):
    whole = numbers_in(input_of(cache=cache).train().take(3 * STEPS))
    resumed = input_of(cache=cache)
    for epoch, batch in [(0, 3), (1, 0), (1, 6), (2, 5)]:
        begin = epoch * STEPS + batch
        rest = resumed.train(epoch, batch).take(3 * STEPS - begin)
        assert numbers_in(rest) == whole[begin:]


@pytest.mark.parametrize("cache", ["none", "memory"])
def test_the_first_features_are_read_again_during_the_first_epoch(input_of, cache):
    made = input_of(cache=cache, shuffle_mb=1, batch_size=2)
    batches = iter(made.train())
    features, _ = next(batches)
    again = made.first_features()
    assert again["a_xf"].numpy().tolist() == features["a_xf"].numpy().tolist()
    assert next(batches) is not None


@pytest.mark.parametrize("cache", ["none", "memory"])
def test_validation_has_each_example_once_in_one_order(input_of, numbers_in, cache):
    batches = input_of(cache=cache).eval()
    order = list(chain(*numbers_in(batches)))
    assert sorted(order) == ALL[:20]
    assert list(chain(*numbers_in(batches))) == order


def test_a_split_without_examples_is_an_error(input_of, tmp_path):
    with pytest.raises(NodeError, match="there are no examples") as caught:
        input_of(folder=tmp_path)
    assert caught.value.where == f"{tmp_path}/train*"


@pytest.mark.parametrize(("label", "bad"), [({}, -1), ({"task": "multi_label"}, -1.0)])
def test_examples_without_a_valid_label_are_counted(input_of, tmp_path, label, bad):
    examples = [encode({"a": [1.0], "y": [y]}) for y in (bad, -bad, -bad)]
    for split in ("train", "eval"):
        tfrecord.write(tmp_path / f"{split}-0.gz", examples)
    what = "1 of 3 examples have no class: the label 'y' must be one of"
    with pytest.raises(NodeError, match=what):
        input_of(folder=tmp_path, label=label)
