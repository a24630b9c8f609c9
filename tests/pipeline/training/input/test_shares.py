"""Examples divided over workers, replicas and steps."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sluice.errors import NodeError
from sluice.patches.tensorflow import exclude_keras_from_autograph
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf


class AsWorker:
    """Stands for the strategy in one of several processes: gives it its number."""

    def __init__(self, worker: int, workers: int, replicas: int) -> None:
        self._worker, self._workers = worker, workers
        self.num_replicas_in_sync = replicas

    def distribute_datasets_from_function(self, make: Callable[[Any], Any]) -> Any:
        import tensorflow as tf

        context = tf.distribute.InputContext(
            num_input_pipelines=self._workers, input_pipeline_id=self._worker
        )
        return make(context)


def of_workers(
    workers: int, replicas: int = 0, static: bool = False, kind: str = "multi_worker"
) -> list[dict[str, Any]]:
    replicas = replicas or workers
    return [
        {
            "strategy": AsWorker(worker, workers, replicas),
            "kind": "tpu" if static else kind,
            "workers": workers,
            "worker": worker,
        }
        for worker in range(workers)
    ]


def real_numbers(batches: Any) -> list[int]:
    """Returns the feature ``a`` of the examples with a weight, in order."""
    found = []
    for features, _, *weights in batches:
        values = np.ravel(features["a_xf"]).astype(int)
        real = np.asarray(weights[0]) if weights else np.ones(len(values))
        found += values[real > 0].tolist()
    return found


@pytest.mark.parametrize(("cache", "workers"), [("none", 2), ("memory", 3)])
def test_workers_read_different_examples_in_as_many_steps(input_of, cache, workers):
    made = [
        input_of(batch_size=6, facts=facts, cache=cache)
        for facts in of_workers(workers)
    ]
    (steps,) = {item.steps_per_epoch for item in made}
    (eval_steps,) = {item.eval_steps for item in made}
    seen = set()
    for epoch in (0, 1, 2):
        epochs = [list(item.train(epoch).take(steps)) for item in made]
        numbers = list(chain(*map(real_numbers, epochs)))
        assert len(set(numbers)) == len(numbers) == steps * 6
        seen.update(numbers)
        sizes = {len(batch[1]) for batches in epochs for batch in batches}
        assert sizes == {6 // workers}
    assert seen == set(range(51)), "others are left out in each epoch"
    evals = [list(item.eval()) for item in made]
    assert {len(batches) for batches in evals} == {eval_steps}
    assert sorted(chain(*map(real_numbers, evals))) == list(range(20))


def test_replicas_of_a_worker_take_batches_of_their_own(input_of):
    (facts,) = of_workers(1, replicas=2, static=True, kind="tpu")
    made = input_of(batch_size=8, facts=facts)
    batches = list(made.train(0, 2).take(2 * (made.steps_per_epoch - 2)))
    assert made.steps_per_epoch == 6
    assert {len(batch[1]) for batch in batches} == {4}
    whole = list(input_of(batch_size=8, facts=facts).train().take(12))
    assert real_numbers(batches) == real_numbers(whole)[16:]


@pytest.mark.parametrize("cache", ["none", "memory"])
def test_static_shapes_drop_in_training_and_pad_in_validation(input_of, cache):
    import tensorflow as tf

    made = input_of(batch_size=8, facts={"kind": "tpu"}, cache=cache)
    assert (made.steps_per_epoch, made.eval_steps) == (6, 3)
    for spec in tf.nest.flatten((made.train().element_spec, made.eval().element_spec)):
        assert spec.shape[0] == 8
    epochs = [real_numbers(made.train(epoch).take(6)) for epoch in range(4)]
    assert all(len(set(epoch)) == 48 for epoch in epochs)
    assert len(set(chain(*epochs))) == 51, "others are left out in each epoch"
    assert sorted(real_numbers(made.eval())) == list(range(20))


def test_padding_changes_neither_loss_nor_metrics(input_of):
    import tensorflow as tf

    exclude_keras_from_autograph()
    dense = tf.keras.layers.Dense(3, kernel_regularizer="l2")
    model = tf.keras.Sequential([tf.keras.Input((1,)), dense])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    metric = tf.keras.metrics.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(loss=loss, weighted_metrics=[metric, "sparse_categorical_accuracy"])

    def evaluate(static: bool) -> Any:
        batches = input_of(
            batch_size=8, facts={"kind": "tpu" if static else "one_device"}
        ).eval()
        only = batches.map(lambda features, *rest: (features["a_xf"] / 20, *rest))
        return model.evaluate(only, verbose=0)

    assert evaluate(static=True) == pytest.approx(evaluate(static=False), rel=1e-5)


def test_workers_of_parameter_servers_read_all_in_orders_of_their_own(
    input_of, monkeypatch
):
    """They validate together: each begins elsewhere."""
    import tensorflow as tf

    facts = {"kind": "parameter_server", "asynchronous_workers": 2}
    made, coordinator = input_of(batch_size=5, facts=facts), tf.distribute.coordinator
    trained, validated = [], []
    for worker in (0, 1):
        monkeypatch.setattr(
            coordinator,
            "experimental_get_current_worker_index",
            lambda worker=worker: worker,
        )
        train, validation = made.train().dataset_fn(), made.eval().dataset_fn()
        trained.append(real_numbers(train.take(made.steps_per_epoch)))
        validated += real_numbers(validation.take(made.eval_steps // 2))
    assert [sorted(numbers) for numbers in trained] == [list(range(51))] * 2
    assert trained[0] != trained[1]
    assert sorted(validated) == list(range(20))


def test_too_few_examples_for_a_step_are_an_error(input_of):
    with pytest.raises(NodeError, match="not enough examples") as caught:
        input_of(batch_size=64, facts={"kind": "tpu"})
    assert "51 to train, 20 to validate" in str(caught.value)


def generated() -> Iterator[list[int]]:
    """Yields numbers of records by file, those of even files first."""
    yield [4] * 6
    draw = random.Random(7)
    for _ in range(3):
        yield [draw.randint(0, 9) for _ in range(draw.randint(1, 12))] + [3]


@pytest.mark.parametrize("workers", [1, 3])
def test_all_workers_together_read_each_record_once(tmp_path, workers):
    import tensorflow as tf

    from pipeline.training.input.records import Records

    by_file = []
    for case, sizes in enumerate(generated()):
        files = [
            str(tmp_path / f"{case}-{index:02d}.gz") for index in range(len(sizes))
        ]
        records = [
            f"{index} {n}" for index, size in enumerate(sizes) for n in range(size)
        ]
        for index, file in enumerate(files):
            own = [item.encode() for item in records if item.startswith(f"{index} ")]
            tfrecord.write(Path(file), own)
        shares = Records(files, sizes, 1, []).shares(workers)
        by_file.append(all(share.part == (1, 0) for share in shares))
        for epoch in (None, tf.constant(0, tf.int64), tf.constant(1, tf.int64)):
            read = [list(share.read(epoch).as_numpy_iterator()) for share in shares]
            assert [len(item) for item in read] == [share.count for share in shares]
            found = sorted(record.decode() for item in read for record in item)
            assert found == sorted(records), (sizes, epoch)
    assert by_file[0]
    assert all(by_file) == (workers == 1), "some are shared out by record"
