"""The mistakes document: wrong predictions of saved models of several forms."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sluice.project import own_root
from sluice.record.documents import mistakes_document as module
from sluice.record.documents.mistakes_document import Evaluated, mistakes_document
from sluice.record.documents.privacy import Privacy
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example

pytestmark = pytest.mark.tf

PROPERTIES = {"split_names": '["train", "eval"]'}
KEYS = {"labelKey": "label", "signatureName": "serving_default"}


def picture() -> bytes:
    content = io.BytesIO()
    Image.new("L", (9, 5), 200).save(content, "png")
    return content.getvalue()


def example(scores: Sequence[float], label: int | float | str | None, **more: Any):
    message = Example()
    features = message.features.feature
    features["scores"].float_list.value.extend(scores)
    for name, value in {"label": label, **more}.items():
        if isinstance(value, int):
            features[name].int64_list.value.append(value)
        elif isinstance(value, float):
            features[name].float_list.value.append(value)
        elif value is not None:
            data = value if isinstance(value, bytes) else value.encode()
            features[name].bytes_list.value.append(data)
    return message.SerializeToString()


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Returns models whose predictions are the feature ``scores``, by its size."""
    import tensorflow as tf

    class Model(tf.Module):
        def __init__(self, size: int) -> None:
            super().__init__()
            self._scores = {"scores": tf.io.FixedLenFeature([size], tf.float32)}
            label = tf.io.FixedLenFeature([1], tf.string, "")
            self._label = {"label": label}
            self._names = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [1, 0]), -1
            )

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def serve(self, examples):
            parsed = tf.io.parse_example(examples, self._scores)
            return {"probabilities": parsed["scores"], "names": examples}

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def transform(self, examples):
            parsed = tf.io.parse_example(examples, self._label)
            return {"label_xf": self._names.lookup(parsed["label"])}

    found = {}
    for size in (1, 3):
        model = Model(size)
        found[size] = tmp_path_factory.mktemp("models") / str(size)
        tf.saved_model.save(
            model,
            str(found[size] / "Format-Serving"),
            {"serving_default": model.serve, "transform_features": model.transform},
        )
    return found


class Bench:
    """An evaluation of some examples, in ``eval``."""

    def __init__(self, folder: Path, models: dict[int, Path]) -> None:
        self._folder, self._models = folder, models

    def evaluate(
        self,
        examples: Sequence[bytes],
        privacy: Privacy | None = None,
        size: int = 3,
        **spec: Any,
    ) -> Any:
        path = self._folder / "examples" / "Split-eval" / "data.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        tfrecord.write(path, examples)
        config = {"evalConfig": {"modelSpecs": [{**KEYS, **spec}]}}
        (self._folder / "eval_config.json").write_text(json.dumps(config))
        uri = str(path.parents[1])
        evaluated = Evaluated(str(self._models[size]), uri, PROPERTIES)
        found = mistakes_document(str(self._folder), evaluated, privacy or Privacy())
        json.dumps(found)
        return found


@pytest.fixture
def bench(tmp_path: Path, models: dict[int, Path]) -> Bench:
    return Bench(tmp_path, models)


RIGHT = example([0.1, 0.8, 0.1], 1)
UNSURE = example([0.5, 0.3, 0.2], 1)
CONFIDENT = example([0.0, 0.25, 0.75], 1, fare=2.5, company="Flash", tag=b"\xff\xfe")
UNLABELLED = example([0.0, 0.0, 1.0], None)


def test_the_most_confident_come_first(bench: Bench) -> None:
    found = bench.evaluate([RIGHT, UNSURE, UNLABELLED, CONFIDENT])
    first, second = found.pop("mistakes")
    assert found == {
        "private": False,
        "limits": {"examples": 5000, "seconds": 1.0, "mistakes": 24},
        "split": "eval",
        "label": "label",
        "signature": "serving_default",
        "classes": ["0", "1", "2"],
        "examples": 3,
        "complete": True,
        "wrong": 2,
        "withheld": [],
    }
    assert first == {
        "file": "Split-eval/data.gz",
        "record": 4,
        "true": "1",
        "predicted": "2",
        "probability": 0.75,
        "true_probability": 0.25,
        "images": [],
        "values": {
            "company": "Flash",
            "fare": 2.5,
            "scores": [0.0, 0.25, 0.75],
            "tag": "2 bytes that are not text",
        },
        "values_left_out": 0,
    }
    assert second["record"] == 2
    assert second["values"]["fare"] is None
    page = (own_root() / "docs" / "run_record.md").read_text()
    section = page.partition("### mistakes\n")[2].partition("\n### ")[0]
    listed = re.findall(r"`(\w+)`", section)
    assert {*found, "mistakes", *first} <= set(listed)


def test_images_are_shown(bench: Bench) -> None:
    found = bench.evaluate([example([1.0, 0.0, 0.0], 1, photo=picture()), UNSURE])
    first, second = found["mistakes"]
    (image,) = first["images"]
    assert image.pop("data").startswith("data:image/png;base64,")
    assert image == {"feature": "photo", "width": 9, "height": 5, "format": "png"}
    assert "photo" not in first["values"]
    assert second["images"][0]["data"] is None


def test_two_classes_with_one_probability(bench: Bench) -> None:
    examples = [example([0.875], 0), example([0.25], 1), example([0.5], 1)]
    found = bench.evaluate(examples, size=1)
    shown = [
        (item["true"], item["predicted"], item["probability"], item["true_probability"])
        for item in found["mistakes"]
    ]
    assert shown == [("0", "1", 0.875, 0.125), ("1", "0", 0.75, 0.25)]
    assert (found["examples"], found["wrong"]) == (3, 2)


def test_logits_become_probabilities(bench: Bench) -> None:
    (mistake,) = bench.evaluate([example([3.0, 5.0, 3.0], 0)])["mistakes"]
    assert mistake["predicted"] == "1"
    assert mistake["probability"] == pytest.approx(0.787, abs=1e-3)


def test_labels_come_from_the_preprocessing_where_records_have_none(
    bench: Bench,
) -> None:
    examples = [example([0.875], "dog"), example([0.25], "cat"), example([0.9], "cow")]
    spec: dict[str, Any] = {
        "labelKey": "label_xf",
        "preprocessingFunctionNames": ["transform_features"],
        "predictionKey": "probabilities",
    }
    found = bench.evaluate(examples, size=1, **spec)
    assert (found["label"], found["examples"], found["wrong"]) == ("label_xf", 2, 2)
    # Without the signature, text is no known class.
    assert bench.evaluate(examples, size=1) is None


def test_class_names_are_those_of_the_export(
    bench: Bench, models: dict[int, Path]
) -> None:
    path = models[1] / "Format-Serving" / "assets.extra" / "classes.json"
    path.parent.mkdir()
    path.write_text('{"classes": ["dog", "cat"]}')
    try:
        found = bench.evaluate(
            [example([0.875], "dog"), example([0.75], "cat")],
            Privacy(label="label"),
            size=1,
            labelKey="label_xf",
        )
    finally:
        path.unlink()
        path.parent.rmdir()
    (mistake,) = found["mistakes"]
    assert (mistake["true"], mistake["predicted"]) == ("dog", "cat")


@pytest.mark.parametrize(
    ("examples", "size"),
    [
        ([example([7.5], 3.25)], 1),  # A regression.
        ([example([0.5], 0.25)], 1),
        ([example([0.5], 2)], 1),
        ([example([0.2, 0.3, 0.5], 3)], 3),
        ([UNLABELLED], 3),
    ],
)
def test_what_is_no_classifier_has_no_mistakes(
    bench: Bench, examples: list[bytes], size: int
) -> None:
    assert bench.evaluate(examples, size=size) is None


@pytest.mark.parametrize(
    "spec",
    [
        {"labelKey": ""},
        {"isBaseline": True},
        {"signatureName": "other"},
        {"signatureName": "transform_features", "predictionKey": "nothing"},
    ],
)
def test_what_is_not_known_to_predict_has_no_mistakes(
    bench: Bench, spec: dict[str, Any]
) -> None:
    assert bench.evaluate([CONFIDENT], **spec) is None


def test_sensitive_and_private_values_are_left_out(bench: Bench) -> None:
    hidden = {"company", "photo"}
    examples = [CONFIDENT, example([1.0, 0.0, 0.0], 1, photo=picture())]
    found = bench.evaluate(examples, Privacy(sensitive=hidden))
    assert found["withheld"] == ["company", "photo"]
    for mistake in found["mistakes"]:
        assert mistake["images"] == []
        assert not hidden & mistake["values"].keys()
    found = bench.evaluate(examples, Privacy(private=True))
    assert (found["private"], found["wrong"], found["mistakes"]) == (True, 2, [])


def test_numbers_are_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_EXAMPLES", 50)
    monkeypatch.setattr(module, "MAX_FEATURES", 1)
    found = bench.evaluate([CONFIDENT] * 60)
    assert (found["examples"], found["complete"], found["wrong"]) == (50, False, 50)
    assert [item["record"] for item in found["mistakes"]] == [*range(1, 25)]
    assert list(found["mistakes"][0]["values"]) == ["company"]
    assert found["mistakes"][0]["values_left_out"] == 3
    monkeypatch.setattr(module, "MAX_SECONDS", 0.0)
    assert bench.evaluate([CONFIDENT] * 60)["examples"] == 8


def test_without_an_evaluation_or_split_there_is_nothing(
    tmp_path: Path, models: dict[int, Path]
) -> None:
    evaluated = Evaluated(str(models[3]), str(tmp_path), {"split_names": '["train"]'})
    assert mistakes_document(str(tmp_path), evaluated, Privacy()) is None
    config = {"evalConfig": {"modelSpecs": [KEYS]}}
    (tmp_path / "eval_config.json").write_text(json.dumps(config))
    assert mistakes_document(str(tmp_path), evaluated, Privacy()) is None
