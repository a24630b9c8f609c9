"""What counts as missing, in Transform's output and in both signatures of a model.

Every kind of feature gets values that libraries read differently.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from pipeline.config.label import transformed_name
from sluice.tfrecords import tfrecord
from tests.kit.analysis import analyze, serialize
from tests.kit.trainings import feature_set

pytestmark = [pytest.mark.tf, pytest.mark.acceptance]

LEAST = -(2**63)
MISSING: dict[str, Any] = {"float32": math.nan, "int64": LEAST, "string": b""}
VALUES: dict[str, list[Any]] = {
    "float32": [1.0, 2.0, -3.5, 0.0, 70.25, math.nan, math.inf, -math.inf],
    "int64": [0, 7, -3, 2**53, 2**53 + 1, LEAST],
    "string": [
        *(b"red", b"blue\n", b"blue\\n", b"green\r\n", b"black\r", b"\n", b"\\", b"n"),
        *(b"2000-02-29", b"2000-02-30T23:15", b"1969-12-31 23:15"),
        *(b" ", b"a\tb", b"a\x00", b"a", b"\xff\n", b"\xff", "\u00fc".encode(), b""),
    ],
}
# Kind, type, and number of values: one at most, one, so many, or any number (None).
ONE, ANY = "one", None
_TEXT = {"kind": "text", "length": 4}
_SEQUENCE = {**_TEXT, "form": "sequence", "split": False}
_VECTOR = {"kind": "vector"}
_PIXELS = {"kind": "pixels", "height": 1, "width": 2, "channels": 1}
COLUMNS: dict[str, tuple[Any, str, Any]] = {
    "numeric": ({"kind": "numeric", "missing_indicator": True}, "float32", 1),
    "optional": ({"kind": "numeric", "missing_indicator": True}, "float32", ONE),
    "clipped": ({"kind": "numeric", "clip": [0, 50], "log": True}, "float32", 1),
    "large": ("numeric", "float32", 1),
    "large pair": (_VECTOR, "float32", 2),
    "count": ({"kind": "numeric", "missing_indicator": True}, "int64", 1),
    "quantile": ({"kind": "bucketized", "buckets": 3}, "float32", 1),
    "quantile of one": ({"kind": "bucketized", "buckets": 3}, "float32", ONE),
    "word": ("vocabulary", "string", 1),
    "optional word": ("vocabulary", "string", ONE),
    "code": ("vocabulary", "int64", 1),
    "hash": ({"kind": "hashed", "buckets": 1 << 20}, "string", 1),
    "hash of one": ({"kind": "hashed", "buckets": 1 << 20}, "int64", ONE),
    "tags": ({"kind": "multi_hot", "top_k": 20}, "string", ANY),
    "pair": ({"kind": "multi_hot", "top_k": 20}, "int64", 2),
    "each": (_VECTOR, "float32", 3),
    "all": ({**_VECTOR, "scale": "all"}, "float32", 3),
    "none": ({**_VECTOR, "scale": "none", "clip": [0, None]}, "float32", 3),
    "whole": (_VECTOR, "int64", 3),
    "tokens": (_SEQUENCE, "string", ANY),
    "steps": (_SEQUENCE, "int64", ANY),
    "bigrams": ({**_SEQUENCE, "ngrams": 2}, "string", ANY),
    "review": (_TEXT, "string", 1),
    "sold": ("time", "int64", 1),
    "born": ("time", "string", ONE),
    "plain": ("passthrough", "float32", 1),
    "plain word": ("passthrough", "string", ONE),
    "plain list": ({"kind": "passthrough", "length": 3}, "float32", ANY),
    "plain words": ({"kind": "passthrough", "length": 3}, "string", ANY),
    "plain pair": ("passthrough", "int64", 2),
    "pixels": (_PIXELS, "float32", 2),
}
CROSS = {"kind": "cross", "of": ["word", "hash of one"], "buckets": 1 << 20}
KINDS = {name: kind for name, (kind, _, _) in COLUMNS.items()}
FEATURES = feature_set({**KINDS, "cross": CROSS, "row": "passthrough"}).model_copy(
    update={
        "label": feature_set({}).label.model_copy(
            update={"task": "regression", "classes": None}
        )
    }
)


def _row(number: int, choose: Any) -> dict[str, list[Any]]:
    """Returns a record; ``choose`` makes values of a type and their number."""
    values = {name: choose(dtype, many) for name, (_, dtype, many) in COLUMNS.items()}
    return {**values, "row": [number], "y": [0.5]}


def _generated(number: int) -> dict[str, list[Any]]:
    source = random.Random(number)

    def choose(dtype: str, many: Any) -> list[Any]:
        most = {ONE: 1, ANY: 4}.get(many)
        count = many if most is None else source.randint(0, most)
        return source.choices(VALUES[dtype], k=count)

    row = _row(number, choose)
    large = {name: [1e30 * x for x in row[name]] for name in ("large", "large pair")}
    return {**row, **large}


def _only(values: dict[str, Any]) -> dict[str, list[Any]]:
    """Returns a record that has one value, by type, everywhere."""

    def choose(dtype: str, many: Any) -> list[Any]:
        return [values[dtype]] * (many if isinstance(many, int) else 1)

    return _row(0, choose)


ROWS = [_generated(number) for number in range(400)]
NO_VALUES = [
    _only({**MISSING, "float32": value}) for value in (math.nan, math.inf, -math.inf)
]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The analysis of ROWS, beside which they lie transformed."""
    import tensorflow as tf

    def spec(dtype: str, many: Any) -> Any:
        if isinstance(many, int):
            return tf.io.FixedLenFeature([many], dtype)
        return tf.io.VarLenFeature(tf.as_dtype(dtype))

    specs = {name: spec(dtype, many) for name, (_, dtype, many) in COLUMNS.items()}
    specs |= {"row": spec("int64", 1), "y": spec("float32", 1)}
    directory = tmp_path_factory.mktemp("missing")
    found = analyze(ROWS, specs, FEATURES, directory, transformed=ROWS)
    for feature in found.raw_metadata.schema.feature:
        if COLUMNS.get(feature.name, ("", "", 1))[2] == ONE:
            feature.value_count.max = 1
    found.transformed_file = directory / "transformed.gz"
    return found


def _everything(features: dict[str, Any]) -> Any:
    """Returns all transformed features in one matrix, texts by their hash."""
    import tensorflow as tf

    parts = [
        tf.strings.to_hash_bucket_fast(value, 1 << 20)
        if value.dtype == tf.string
        else value
        for _, value in sorted(features.items())
    ]
    rows = tf.shape(parts[0])[0]
    return tf.concat(
        [tf.reshape(tf.cast(x, tf.float32), [rows, -1]) for x in parts], axis=1
    )


@pytest.fixture(scope="module")
def signatures(output: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Those of a model that answers with all transformed features."""
    import tensorflow as tf

    from pipeline.training.export import export_model

    class Model(tf.Module):
        weights = ()

        def __call__(self, features, training):
            return _everything(features)

    folder = tmp_path_factory.mktemp("model")
    model: Any = Model()
    export_model(model, str(folder / "1"), FEATURES, output)
    loaded = tf.saved_model.load(str(folder / "1"))
    # Signatures live as long as what they were loaded with.
    return {"loaded": loaded, **loaded.signatures}


def _from_examples(signatures: Any, rows: list[dict[str, list[Any]]]) -> np.ndarray:
    import tensorflow as tf

    answers = signatures["serving_default"](examples=tf.constant(serialize(rows)))
    return answers["prediction"].numpy()


def _from_values(signatures: Any, rows: list[dict[str, list[Any]]]) -> np.ndarray:
    import tensorflow as tf

    from pipeline.config.features import identifiers

    columns, inputs = {}, identifiers([*COLUMNS, "row"])
    for name, (_, dtype, many) in {**COLUMNS, "row": ("", "int64", 1)}.items():
        width = max(1, *(len(row[name]) for row in rows))
        values = [
            row[name] + [MISSING[dtype]] * (width - len(row[name])) for row in rows
        ]
        column = tf.constant(values, dtype)
        columns[inputs[name]] = column[:, 0] if many in (1, ONE) else column
    return signatures["predict_values"](**columns)["prediction"].numpy()


def test_training_and_both_signatures_read_the_same(output, signatures):
    import tensorflow as tf

    from pipeline.training.input.examples import ExampleFormat
    from pipeline.training.input.images import decode_images

    records = list(tfrecord.read(output.transformed_file))
    written = tf.io.parse_example(records, output.transformed_feature_spec())
    order = np.argsort(written["row_xf"][:, 0])
    del written["y_xf"]
    trained_on = _everything(decode_images(written, FEATURES.images)).numpy()[order]
    assert np.isfinite(trained_on).all()
    example_format = ExampleFormat(
        output.raw_feature_spec(),
        output.transform_features_layer(),
        output.transformed_feature_spec(),
        FEATURES,
    )
    read = example_format.transformed(tf.constant(serialize(ROWS)))
    del read["y_xf"]
    answers = _everything(decode_images(read, FEATURES.images)).numpy()
    np.testing.assert_allclose(answers, trained_on, rtol=1e-5, atol=1e-5)
    for answers in (_from_examples(signatures, ROWS), _from_values(signatures, ROWS)):
        np.testing.assert_allclose(answers, trained_on, rtol=1e-5, atol=1e-5)


def _transformed(output: Any, rows: list[dict[str, list[Any]]]) -> dict[str, Any]:
    import tensorflow as tf

    from pipeline.training.input.images import decode_images

    parsed = tf.io.parse_example(serialize(rows), output.raw_feature_spec())
    found = decode_images(output.transform_features_layer()(parsed), FEATURES.images)
    return {name: value.numpy() for name, value in found.items()}


def test_no_value_is_missing(output):
    absent = {
        name: [] if COLUMNS[name][2] in (ONE, ANY) else x
        for name, x in NO_VALUES[0].items()
        if name in COLUMNS
    }
    rows = [{**NO_VALUES[0], **absent}, *NO_VALUES]
    for name, values in _transformed(output, rows).items():
        if name in ("y_xf", "row_xf", "cross_xf"):
            continue
        expected = np.zeros_like(values, bool)
        if (KINDS[name.removesuffix("_xf")] or {}) == COLUMNS["numeric"][0]:
            expected[:, 1] = True
        np.testing.assert_array_equal(values.astype(bool), expected, name)


def test_mean_deviation_and_quantiles_are_of_finite_numbers(output):
    found = _transformed(output, ROWS)
    for name, axis in (
        *(("numeric", 0), ("optional", 0), ("large", 0)),
        *(("each", 0), ("large pair", 0), ("all", None)),
    ):
        rows = [row[name] or [math.nan] for row in ROWS]
        raw = np.where(np.isfinite(rows), rows, np.nan)
        scores = (raw - np.nanmean(raw, axis)) / np.nanstd(raw, axis)
        got = found[transformed_name(name)][:, : raw.shape[1]]
        np.testing.assert_allclose(got, np.nan_to_num(scores), atol=1e-4, err_msg=name)
    finite = [value for value in VALUES["float32"] if math.isfinite(value)]
    examples = [{**ROWS[0], "quantile": [value]} for value in sorted(finite)]
    ids = _transformed(output, examples)["quantile_xf"][:, 0].tolist()
    assert ids == sorted(ids) and {*ids} == {1, 2, 3}


@pytest.mark.parametrize("name", ["word", "optional word", "code", "hash"])
def test_each_value_has_an_id_of_its_own(output, name):
    from pipeline.training.preprocessing import number_of_ids

    dtype = COLUMNS[name][1]
    values = [value for value in VALUES[dtype] if value != MISSING[dtype]]
    rows = [{**ROWS[0], name: [value]} for value in values]
    ids = _transformed(output, rows)[transformed_name(name)][:, 0].tolist()
    assert len({*ids}) == len(values) and 0 not in ids
    if name != "hash":
        # Beside them there are the missing one and a bucket of unknown ones.
        assert {*ids} == {*range(1, len(values) + 1)}
        assert number_of_ids(name, FEATURES, output) == len(values) + 2
