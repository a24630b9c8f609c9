"""The preprocessing rules, run through tensorflow_transform itself."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta
from typing import Any

import pytest

from pipeline.config.label import Label
from tests.kit.analysis import analyze, serialize
from tests.kit.trainings import feature_set

pytestmark = pytest.mark.tf

FEATURES = feature_set(
    {
        "miles": "numeric",
        "hour": "numeric",
        "place": {"kind": "bucketized", "buckets": 3},
        "pay/kind": {"kind": "vocabulary", "oov_buckets": 2},
        "tract": {"kind": "hashed", "buckets": 16},
        "income": {
            "kind": "numeric",
            "clip": [None, 100],
            "log": True,
            "missing_indicator": True,
        },
        "wave": "vector",
        "embedding": {"kind": "vector", "scale": "all"},
        "raw": {"kind": "vector", "scale": "none", "clip": [0, 5], "log": True},
        "genres": {"kind": "multi_hot", "top_k": 3},
        "pair": {"kind": "multi_hot", "top_k": 2, "oov_buckets": 2},
        "review": {"kind": "text", "length": 4, "top_k": 3, "ngrams": 2},
        "line": {"kind": "text", "form": "sequence", "length": 4},
        "tokens": {"kind": "text", "form": "sequence", "split": False, "length": 3},
        "kind x tract": {"kind": "cross", "of": ["pay/kind", "tract"], "buckets": 50},
        "ids": {"kind": "passthrough", "length": 3},
        "name": "passthrough",
        "sold": "time",
        "born": {"kind": "time", "parts": ["age", "month"]},
        "picture": {"kind": "image", "height": 1, "width": 1, "channels": 1},
    },
    ("no", "yes"),
    label="tip",
    sample_weight="worth",
)
KNOWN: dict[str, Any] = {
    "picture": [b"pixels"],
    "tip": [b"no"],
    "worth": [3],
    "wave": [0, 0],
    "embedding": [0.0, 0.0],
    "raw": [0.0, 0.0],
    "pair": [7, 7],
    "line": [b"not"],
}
TRAINING: list[dict[str, Any]] = [
    {"miles": [1.0], "hour": [3], "place": [10.0], "pay/kind": [b"Cash"], "tract": [7]},
    {"miles": [2.0], "hour": [5], "place": [20.0], "pay/kind": [b"Card"], "tract": [8]},
    {"miles": [3.0], "hour": [4], "place": [30.0], "pay/kind": [b"Cash"], "tract": [7]},
]
MISSING: dict[str, Any] = {name: [] for name in TRAINING[0]}
LISTS: list[dict[str, Any]] = [
    {
        **{"wave": [1, 5], "embedding": [1.0, 3.0], "pair": [0, 7]},
        **{"genres": [b"a", b"b"], "line": [b"Not good, not bad!"], "tokens": [5, 7]},
        "review": [b"so good"],
    },
    {"wave": [3, 5], "embedding": [1.0, 3.0], "genres": [b"a"], "pair": [0, 0]},
    {"wave": [2, 5], "embedding": [2.0, 2.0], "genres": [], "pair": [7, 0]},
]
BORN = (b"1999-12-31", b"2000-01-02", b"none")


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The TFTransformOutput of an analysis of TRAINING."""
    import tensorflow as tf

    spec: dict[str, Any] = {
        "miles": tf.io.VarLenFeature(tf.float32),
        "hour": tf.io.VarLenFeature(tf.int64),
        "place": tf.io.VarLenFeature(tf.float32),
        "pay/kind": tf.io.VarLenFeature(tf.string),
        "tract": tf.io.VarLenFeature(tf.int64),
        "picture": tf.io.FixedLenFeature([1], tf.string),
        "income": tf.io.VarLenFeature(tf.float32),
        "wave": tf.io.FixedLenFeature([2], tf.int64),
        "embedding": tf.io.FixedLenFeature([2], tf.float32),
        "raw": tf.io.FixedLenFeature([2], tf.float32),
        "genres": tf.io.VarLenFeature(tf.string),
        "review": tf.io.VarLenFeature(tf.string),
        "line": tf.io.FixedLenFeature([1], tf.string),
        "tokens": tf.io.VarLenFeature(tf.int64),
        "ids": tf.io.VarLenFeature(tf.int64),
        "name": tf.io.VarLenFeature(tf.string),
        "sold": tf.io.VarLenFeature(tf.int64),
        "born": tf.io.VarLenFeature(tf.string),
        "pair": tf.io.FixedLenFeature([2], tf.int64),
        "tip": tf.io.FixedLenFeature([1], tf.string),
        "worth": tf.io.FixedLenFeature([1], tf.int64),
    }
    rows = [
        {"income": [50.0], **KNOWN, **row, **lists, "sold": [0], "born": [born]}
        for row, lists, born in zip(TRAINING, LISTS, BORN, strict=True)
    ]
    return analyze(rows, spec, FEATURES, tmp_path_factory.mktemp("tft"))


def _apply(output, rows: list[dict[str, Any]]) -> dict[str, list]:
    import tensorflow as tf

    serialized = serialize([{**KNOWN, **row} for row in rows])
    parsed = tf.io.parse_example(serialized, output.raw_feature_spec())
    transformed = output.transform_features_layer()(parsed)
    return {
        key: (tensor[:, 0] if tensor.shape[1:] == [1] else tensor).numpy().tolist()
        for key, tensor in transformed.items()
    }


def test_numbers_are_z_scores_and_a_missing_one_is_the_mean(output):
    values = _apply(output, [*TRAINING, MISSING])
    assert values["miles_xf"] == pytest.approx([-1.2247, 0.0, 1.2247, 0.0], abs=1e-4)
    assert values["hour_xf"] == pytest.approx([-1.2247, 1.2247, 0.0, 0.0], abs=1e-4)


def test_categories_start_at_1_and_missing_is_0(output):
    values = _apply(output, [*TRAINING, MISSING])
    assert values["place_xf"] == [1, 2, 3, 0]
    assert values["pay/kind_xf"] == [1, 2, 1, 0]
    first, second, third, missing = values["tract_xf"]
    assert first == third != second
    assert (missing, min(first, second) >= 1) == (0, True)


def test_a_number_is_clipped_then_its_logarithm_taken_and_its_absence_marked(output):
    rows = [{"income": [value]} for value in (50.0, 1e9, 100.0, -50.0)]
    at_mean, above, limit, negative, missing = _apply(output, [*rows, {}])["income_xf"]
    # All incomes of the training are 50: without variance only their mean is taken off.
    assert (at_mean, missing) == ([0.0, 0.0], [0.0, 1.0])
    assert above == limit == pytest.approx([math.log(101 / 51), 0.0])
    assert negative == pytest.approx([-2 * math.log(51), 0.0])
    raw = _apply(output, [{"raw": [-3.0, 4.0]}, {"raw": [9.0, 5.0]}])["raw_xf"]
    log = [[math.log(1), math.log(5)], [math.log(6), math.log(6)]]
    assert raw == [pytest.approx(row) for row in log]


def test_vectors_are_scaled_by_element_or_as_a_whole(output):
    values = _apply(output, [{**KNOWN, **row} for row in LISTS])
    each = [[-1.2247, 0.0], [1.2247, 0.0], [0.0, 0.0]]
    assert values["wave_xf"] == [pytest.approx(row, abs=1e-4) for row in each]
    # The mean of all six numbers is 2, their variance 2/3.
    whole = [[-1.2247, 1.2247], [-1.2247, 1.2247], [0.0, 0.0]]
    assert values["embedding_xf"] == [pytest.approx(row, abs=1e-4) for row in whole]


def test_multi_hot_marks_each_category_once(output):
    rows = [*LISTS, {"genres": [b"b", b"b", b"new"], "pair": [8, 9]}, {"pair": [7, 7]}]
    values = _apply(output, rows)
    # "a" is the most frequent of two; the third place is that of unknown ones.
    a, b, new, none = [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]
    mixed = [[1, 1, 0, 0], a, none, [b[i] + new[i] for i in range(4)], none]
    assert values["genres_xf"] == mixed
    both, zero, *_, seven = values["pair_xf"]
    assert both == values["pair_xf"][2] == [1, 1, 0, 0]
    assert (zero, seven) == ([1, 0, 0, 0], [0, 1, 0, 0])
    unknown = values["pair_xf"][3]
    assert unknown[:2] == [0, 0] and sum(unknown[2:]) in (1, 2)


def test_a_bag_of_words_and_pairs_has_each_once(output):
    texts = ["So good, so GOOD", "good film", "", None]
    rows = [{"review": [] if text is None else [text.encode()]} for text in texts]
    so_good, film, empty, missing = _apply(output, rows)["review_xf"]
    # Known: "so", "good", "so good"; the pair "good so" is the unknown one, 4.
    assert sorted(so_good) == [1, 2, 3, 4]
    assert film[0] in (1, 2, 3) and film[1:] == [4, 4, 0]
    assert empty == missing == [0, 0, 0, 0]


def test_a_sequence_keeps_the_order_and_the_first_words(output):
    texts = ["bad not", "\u00dcber not good bad not", "..."]
    rows = [{"line": [text.encode()], "tokens": [7, 5, 9, 5]} for text in texts]
    values = _apply(output, [*rows, {}])
    bad_not, cut, none, _ = values["line_xf"]
    # "not" is the most frequent word of the training.
    bad = bad_not[0]
    assert (bad_not, none) == ([bad, 1, 0, 0], [0, 0, 0, 0])
    assert cut == [4, 1, 5 - bad, bad]
    seven, five, unknown = values["tokens_xf"][0]
    assert ({seven, five}, unknown) == ({1, 2}, 3)
    assert values["tokens_xf"][3] == [0, 0, 0]


def test_labels_become_ids_and_unknown_ones_none(output):
    rows = [{**MISSING, "tip": [tip]} for tip in (b"no", b"yes", b"perhaps")]
    assert _apply(output, rows)["tip_xf"] == [0, 1, -1]


def test_floats_are_classes_where_they_are_equal_to_one():
    import tensorflow as tf

    from pipeline.training.preprocessing import class_ids

    label = Label(feature="stars", classes=(0, 1, 2**24))
    values = [[1.0], [2.0**24], [0.5], [float("nan")], [-0.0]]
    assert class_ids(tf.constant(values), label).numpy().tolist() == [
        *([1], [2], [-1], [-1], [0])
    ]
    missing = tf.sparse.from_dense([[0.0], [1.0]])
    assert class_ids(missing, label).numpy().tolist() == [[-1], [1]]


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ([[0, 1, 0], [1, 0, 0]], [[1], [0]]),
        # None of the classes, or two.
        ([[0, 0, 0], [1, 0, 1]], [[-1], [-1]]),
        ([[0.0, 0.0, 1.0], [float("nan")] * 3], [[2], [-1]]),
        # Shares of classes, of which a schema says no more than 0 to 1.
        ([[0.0, 0.5, 0.0], [0.0, 1.0, 0.1]], [[-1], [-1]]),
    ],
)
def test_one_hot_labels_are_ids(rows, ids):
    import tensorflow as tf

    from pipeline.training.preprocessing import label_values

    label = Label(feature="kind", classes=("a", "b", "c"))
    found = label_values(tf.constant(rows), label)
    assert (found.dtype, found.numpy().tolist()) == (tf.int64, ids)


@pytest.mark.parametrize(
    "given",
    [
        [[b"war", b"drama", b"war"], [], [b"crime", b"western"]],
        [[7, 9, 7], [], [8, 99]],
        [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        [[1, 0, 1], [0, 0, 0], [0, 1, 0]],
    ],
)
def test_several_labels_are_0_or_1_for_each_class(given):
    import tensorflow as tf

    from pipeline.training.preprocessing import label_values

    classes: Any = ("war", "crime", "drama")
    if given[0][0] == 7:
        classes = (7, 8, 9)
    label = Label(feature="genres", task="multi_label", classes=classes)
    is_list = given[1] == []
    value = tf.ragged.constant(given).to_sparse() if is_list else tf.constant(given)
    found = label_values(value, label)
    assert found.dtype == tf.float32
    assert found.numpy().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]


def test_other_numbers_than_0_and_1_are_no_labels():
    import tensorflow as tf

    from pipeline.training.preprocessing import label_values

    label = Label(feature="genres", task="multi_label", classes=("war", "crime"))
    found = label_values(tf.constant([[0.2, 1.0], [0.0, float("nan")]]), label)
    assert found.numpy().tolist() == [[-1, 1], [0, -1]]


def test_a_cross_is_of_the_combination(output):
    rows = [
        {"pay/kind": [kind], "tract": [tract]}
        for kind, tract in ((b"Cash", 1), (b"Card", 1), (b"Cash", 2), (b"Cash", 1))
    ]
    first, second, third, again = _apply(output, rows)["kind x tract_xf"]
    assert first == again and len({first, second, third}) == 3
    assert all(1 <= id <= 50 for id in (first, second, third))


def test_a_time_is_its_parts_and_a_missing_one_has_none(output):
    noon = 1_709_208_000  # Thursday, 2024-02-29, 12:00.
    known: dict[str, Any] = {"sold": [noon], "born": [b"1999-12-30T12:00"]}
    rows = [known, {"born": [b"2000-02-30"]}]
    first, missing = _apply(output, rows)["sold_xf"]
    at = [place for place, x in enumerate(first) if x]
    # All training data was sold in 1970: without variance, days are as they are.
    assert (at, first[-1]) == ([12, 24 + 3, 24 + 7 + 1, 24 + 7 + 12], -noon / 86400)
    assert missing == [0.0] * (24 + 7 + 12 + 1)
    first, missing = _apply(output, rows)["born_xf"]
    # Training data was born a day from its mean: older is more.
    assert first == pytest.approx(11 * [0] + [1, 1.5])
    assert missing == [0.0] * 13


def test_parts_of_times_are_those_of_datetime():
    import numpy as np
    import tensorflow as tf

    from pipeline.training.calendar_parts import calendar_parts

    chance, first = random.Random(7), datetime(1, 1, 1)
    known = ("1969-12-31 23:59", "2000-02-29 00:00", "1900-02-28 23:59", "0001-01-01")
    times = [datetime.fromisoformat(text) for text in known]
    minutes = (chance.randrange(9998 * 365 * 24 * 60) for _ in range(3000))
    times += [first + timedelta(minutes=x, seconds=59) for x in minutes]
    wanted = [(x.hour, x.weekday(), x.month - 1) for x in times]
    epoch = datetime(1970, 1, 1)
    seconds = [(x - epoch) // timedelta(seconds=1) for x in times]
    ends = ("", "Z", ".123+05:30", "-0800")
    texts = [x.isoformat("T "[i % 2]) + ends[i % 4] for i, x in enumerate(times)]
    for values in (np.array(seconds), np.array(texts)):
        found = calendar_parts(tf.constant(values))
        parts = np.stack([found[x] for x in ("hour", "weekday", "month")], axis=1)
        assert (parts == wanted).all()
        assert np.abs(found["days"] - np.array(seconds) / 86400).max() < 1 / 24 / 60


def test_text_that_is_no_date_has_no_parts():
    import tensorflow as tf

    from pipeline.training.calendar_parts import calendar_parts

    dates = "2024-02-29 2000-02-29T23:59 2026-12-31T00:00:00.5+01".split()
    others = "2023-02-29 1900-02-29 2026-04-31 0000-00-00 2026-13-01 2026-1-1".split()
    others += "2026-01-01T24:00 2026-01-01T8:00 20260101 2026-01-01x ?".split()
    found = calendar_parts(tf.constant([*dates, *others]))
    assert (found["hour"].numpy() >= 0).tolist() == [True] * 3 + [False] * len(others)
    days = found["days"].numpy()
    assert [math.isnan(x) for x in days] == [False] * 3 + [True] * len(others)
