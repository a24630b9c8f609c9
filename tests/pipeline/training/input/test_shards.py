"""Records of shards: shared out to workers, and kept between counting and decoding."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sluice.tfrecords import tfrecord
from tests.kit.trainings import feature_set

pytestmark = pytest.mark.tf

InputOf = Callable[..., Any]
FEATURES = feature_set({"a": "numeric"}, (0, 1, 2))


def generated() -> Iterator[list[int]]:
    """Yields numbers of records by file, those of even files first."""
    yield [4] * 6
    draw = random.Random(7)
    for _ in range(6):
        yield [draw.randint(0, 9) for _ in range(draw.randint(1, 12))] + [3]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_all_workers_together_read_each_record_once(tmp_path, workers):
    import tensorflow as tf

    from pipeline.training.input.shards import Shards

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
        shares = Shards(files, sizes, bytes=1).shares(workers)
        by_file.append(all(share.part == (1, 0) for share in shares))
        for epoch in (None, tf.constant(0, tf.int64), tf.constant(1, tf.int64)):
            read = [list(share.read(epoch).as_numpy_iterator()) for share in shares]
            assert [len(item) for item in read] == [share.count for share in shares]
            found = sorted(record.decode() for item in read for record in item)
            assert found == sorted(records), (sizes, epoch)
    assert by_file[0]
    assert all(by_file) == (workers == 1), "some are shared out by record"


def test_no_worker_is_without_files():
    from pipeline.training.input.shards import Shards

    # Of 22 workers the one without a file would make the others only 5 % slower.
    files = [f"{index}.gz" for index in range(21)]
    shares = Shards(files, [100] * 21, bytes=1).shares(22)
    assert {share.count for share in shares} == {95, 96}


@pytest.fixture
def count(numbers: Path) -> Callable[[int], list[Any]]:
    """Counts the records of ``numbers`` with a limit of those that are kept."""
    import tensorflow as tf

    from pipeline.training.input.examples import ExampleFormat
    from pipeline.training.input.shards import count_records

    spec = {
        "a_xf": tf.io.FixedLenFeature([1], tf.float32),
        "y_xf": tf.io.FixedLenFeature([1], tf.int64),
    }
    patterns = [[f"{numbers}/train-*"], [f"{numbers}/eval-*"]]
    example_format = ExampleFormat(spec, FEATURES)
    return lambda limit: count_records(patterns, example_format, keep_bytes=limit)


def test_records_are_kept_up_to_a_limit(count):
    size = sum(shards.bytes for shards in count(0))
    assert [len(shards.kept) for shards in count(size - 1)] == [0, 0]
    kept = [sum(map(len, shards.kept)) for shards in count(size)]
    assert kept == [51, 20]


def test_without_memory_nothing_is_kept_or_cached(input_of, monkeypatch):
    from pipeline.training.input import training_input

    given = {}
    counted = training_input.count_records

    def spy(*args: Any, **kwargs: Any) -> list[Any]:
        given.update(kwargs)
        return counted(*args, **kwargs)

    monkeypatch.setattr(training_input, "count_records", spy)
    monkeypatch.setattr(training_input, "free_memory_bytes", lambda: 1000)
    assert input_of(cache="auto").cache == "none"
    assert given["keep_bytes"] == 200, "a fifth of what is free"
    # Decoded they fit, but not beside the records.
    monkeypatch.setattr(training_input, "free_memory_bytes", lambda: 2000)
    assert input_of(cache="auto").cache == "memory"
    assert given["keep_bytes"] == 400
    assert input_of(cache="disk").cache == "disk"
    assert given["keep_bytes"] == 0


def test_kept_records_are_freed_when_decoded_and_the_decoded_ones_after_training(
    input_of, monkeypatch
):
    from pipeline.training.input import batches, training_input

    kept: list[Any] = []
    stores: list[Any] = []
    counted, store_type = training_input.count_records, batches.ExampleStore

    def count_records(*args: Any, **kwargs: Any) -> list[Any]:
        splits = counted(*args, **kwargs)
        kept.extend(weakref.ref(chunk) for item in splits for chunk in item.kept)
        return splits

    def store(*args: Any) -> Any:
        made = store_type(*args)
        stores.append(weakref.ref(made))
        return made

    monkeypatch.setattr(training_input, "count_records", count_records)
    monkeypatch.setattr(batches, "ExampleStore", store)
    _train_once(input_of, kept)
    gc.collect()
    assert len(stores) == 2
    assert [item() for item in stores] == [None, None]


def _train_once(input_of: InputOf, kept: list[Any]) -> None:
    import tensorflow as tf

    made = input_of(cache="memory")
    assert kept and all(item() is not None for item in kept)
    model = tf.keras.Sequential([tf.keras.layers.Dense(3, activation="softmax")])
    model.compile("sgd", "sparse_categorical_crossentropy")

    def batches_of(split: Any) -> Any:
        return split.map(lambda features, label: (features["a_xf"], label))

    model.fit(
        batches_of(made.train()),
        steps_per_epoch=7,
        validation_data=batches_of(made.eval()),
        verbose=0,
    )
    gc.collect()
    assert [item() for item in kept] == [None] * len(kept)
