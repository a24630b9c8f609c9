"""The served model and the new one are asked the requests that were recorded last."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from components.serving_check.settings import Settings
from sample_data.tf_example import encode
from serving.local_store import LocalModelStore
from sluice.record.verdict import Check
from sluice.tfrecords import tfrecord
from tests.kit.served_models import describe, records, save

pytestmark = pytest.mark.tf

Compare = Callable[..., list[Check]]


def record(folder: Path, name: str, requests: Sequence[bytes]) -> None:
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    logs = []
    for data in requests:
        log = prediction_log_pb2.PredictionLog()
        tensor = tf.make_tensor_proto([data])
        log.predict_log.request.inputs["examples"].CopyFrom(tensor)
        logs.append(log.SerializeToString())
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    tfrecord.write(folder / name, logs)


@pytest.fixture
def compare(tmp_path: Path, good: Path, examples: str) -> Compare:
    """Compares a model with ``served``, or what was served before for None."""
    from components.serving_check import shadow

    def run(model: Path, served: Path | None = good, **settings: Any) -> list[Check]:
        store = LocalModelStore(tmp_path / "store")
        if served:
            store.publish(served, facts={})
        version = store.newest()
        assert version is not None
        given = Settings(split="test", **settings)
        folder = tmp_path / "requests"
        return shadow.compare(model, version, folder, examples, given)

    return run


@pytest.fixture(scope="module")
def turned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``good``, but "red" where ``a`` is above 1, and an error from 4 on."""

    def change(outputs: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any]:
        import tensorflow as tf

        with tf.control_dependencies([tf.debugging.assert_less(raw["a"], 4.0)]):
            is_large = raw["a"][:, None] > 1.0
        red = tf.constant([[0.0, 0.0, 1.0]]) * tf.ones_like(outputs["probabilities"])
        return {
            "probabilities": tf.where(is_large, red, outputs["probabilities"]),
            "label": tf.where(is_large, "red", outputs["label"]),
        }

    return save(tmp_path_factory.mktemp("turned") / "Format-Serving", change)


def requests(*numbers: float) -> list[bytes]:
    return [encode({"a": [x], "text": [b"one"], "ids": [1]}) for x in numbers]


# Values of ``a``, of which ``good`` answers none with "red".
SAME, OTHER, REFUSED = 0.0, 2.0, 5.0


def test_changed_answers_are_counted_and_shown(compare, turned, tmp_path):
    folder = tmp_path / "requests"
    record(folder, "2026-11-28/1.tfrecord.gz", requests(*[SAME] * 30, OTHER))
    record(folder, "2026-11-29/1.tfrecord.gz", requests(SAME, REFUSED))
    changed, largest, _ = compare(turned, max_changed_answers=0.1)
    assert (changed.actual, changed.result) == (2 / 33, "pass")
    assert changed.baseline == "version 1"
    assert changed.why == (
        "all 33 recorded requests, of 2026-11-28 to 2026-11-29; "
        "1 the new model does not answer"
    )
    refused, other = changed.examples
    assert refused.startswith("2026-11-29/1.tfrecord.gz, record 2: ")
    assert refused.endswith("now no answer: InvalidArgumentError")
    assert other.startswith("2026-11-28/1.tfrecord.gz, record 31: ")
    assert other.endswith("now red (red 1, green 0, blue 0)")
    assert 0.3 < largest.actual < 1.0
    missed, *_ = compare(turned, max_changed_answers=0.05)
    assert not missed.passed and "0.06061, " in missed.sentence


def test_few_requests_decide_nothing(compare, turned, tmp_path):
    record(tmp_path / "requests", "2026-11-29/1.tfrecord.gz", requests(SAME, OTHER))
    changed, *_ = compare(turned, max_changed_answers=0.1)
    assert (changed.actual, changed.result) == (0.5, "warn")
    assert changed.why.startswith("fewer than 30 requests decide nothing; all 2 ")


def test_the_newest_thousand_are_asked(compare, turned, tmp_path):
    folder = tmp_path / "requests"
    record(folder, "2026-11-27/1.tfrecord.gz", requests(*[OTHER] * 50))
    record(folder, "2026-11-28/1.tfrecord.gz", requests(OTHER, *[SAME] * 700))
    record(folder, "2026-11-29/1.tfrecord.gz", requests(*[SAME] * 300))
    (folder / "2026-11-29" / "2.tfrecord.gz").write_bytes(b"damaged")
    changed, largest, predicted = compare(turned)
    assert predicted.actual > 0.4
    assert predicted.why.startswith("Jensen-Shannon of 'pr")
    assert "' from those of the split 'test'; " in predicted.why
    assert "1,000 examples against 40, where chance gives" not in predicted.why
    assert (changed.actual, largest.actual, changed.examples) == (0.0, 0.0, ())
    assert changed.why == (
        "the newest 1,000 recorded requests, of 2026-11-28 to 2026-11-29; "
        "1 files or records cannot be read"
    )


def test_a_regression_has_the_unit_of_its_target(compare, tmp_path):
    def fare(factor: float) -> Path:
        def change(outputs: dict[str, Any], raw: dict[str, Any]) -> dict[str, Any]:
            return {"prediction": factor * raw["a"][:, None]}

        about = {"task": "regression", "classes": []}
        folder = tmp_path / str(factor) / "Format-Serving"
        return save(folder, change, about=about)

    record(tmp_path / "requests", "2026-11-29/1.tfrecord.gz", requests(3.0, 10.0))
    row, predicted = compare(fare(2.5), fare(2.0))
    assert "Jensen-Shannon" in predicted.why
    assert (row.check, row.actual) == ("largest change", 5.0)
    assert row.examples[0].endswith("record 2: 20, now 25")


@pytest.fixture
def predicted(compare, tmp_path) -> Callable[..., Check]:
    """Returns the row of the predictions for requests with other values of ``a``."""

    def run(outputs: Callable[[Any], dict[str, Any]], **about: Any) -> Check:
        def shifted(shift: float, _: Any, raw: dict[str, Any]) -> dict[str, Any]:
            return outputs(raw["a"][:, None] + shift)

        kinds: dict[str, Any] = {"about": about} if about else {}
        # The served model has other values.
        models = [
            save(
                tmp_path / f"{shift}" / "Format-Serving",
                partial(shifted, shift),
                **kinds,
            )
            for shift in (0.0, 0.01)
        ]
        asked = requests(*[9.0] * 50)
        record(tmp_path / "requests", "2026-11-29/1.tfrecord.gz", asked)
        *_, row = compare(*models)
        assert row.check == "predictions of requests"
        return row

    return run


def test_each_target_is_compared_with_its_own_predictions(predicted):
    def outputs(a: Any) -> dict[str, Any]:
        import tensorflow as tf

        return {"prediction": tf.concat([1000 + 0 * a, a / 1000], axis=1)}

    targets = ["fare", "tip"]
    row = predicted(outputs, task="regression", classes=[], targets=targets)
    assert row.why.startswith("Jensen-Shannon of 'prediction of tip' from those of")
    assert row.actual > 0.75


def test_less_confidence_in_the_same_class_is_a_distance(predicted):
    def outputs(a: Any) -> dict[str, Any]:
        import tensorflow as tf

        share = tf.where(a > 8, 0.5, 0.9) + 0.001 * tf.math.sin(a)
        rest = (1 - share) / 2
        label = tf.fill(tf.shape(share), "green")
        return {"probabilities": tf.concat([rest, share, rest], 1), "label": label}

    row = predicted(outputs)
    what = "Jensen-Shannon of 'probability of the prediction' from those of"
    assert row.why.startswith(what)
    assert row.actual > 0.99


def test_nothing_is_shown_where_there_is_nothing_to_compare(compare, good, turned):
    assert compare(turned) == []


def new_feature(model: Path) -> None:
    about = {"input": "b", "required": False, "in_every_record": False}
    known = {x: {**about, "input": x} for x in ("a", "text", "ids", "b")}
    describe(model, features=known)


@pytest.mark.parametrize(
    ("change", "settings", "text"),
    [
        (None, {"sensitive": ("a",)}, "recorded without 'a', which is sensitive"),
        (new_feature, {}, "no request has 'b', which version 1 does not take: all 40"),
        (lambda x: describe(x, classes=["x"]), {}, "the models have other classes"),
        (lambda x: shutil.rmtree(x / "variables"), {}, "cannot be loaded"),
    ],
)
def test_what_cannot_be_compared_is_said(
    compare, turned, tmp_path, change, settings, text
):
    record(tmp_path / "requests", "2026-11-29/1.tfrecord.gz", records(40))
    model = tmp_path / "model"
    shutil.copytree(turned, model)
    if change:
        change(model)
    (row,) = compare(model, **settings)
    assert (row.actual, row.result) == ("not compared", "pass")
    assert text in row.why
    (row,) = compare(model, **settings, max_changed_answers=0.1)
    assert row.result == "warn"


def test_a_damaged_or_equal_version_is_not_asked(compare, good, turned, tmp_path):
    record(tmp_path / "requests", "2026-11-29/1.tfrecord.gz", records(4))
    assert compare(good) == []
    os.truncate(tmp_path / "store" / "1" / "saved_model.pb", 10)
    (row,) = compare(turned, None)
    assert "version 1 is not what was pushed" in row.why
