"""The document of images: a gallery, sizes, and what may be shown."""

import io
import json
from base64 import b64decode
from typing import Any

import pytest
from PIL import Image

from runners.documents import images
from sluice.privacy import Privacy
from tests.kit.exported_models import example, write_examples


def _picture(colour, size=(9, 5), kind="png"):
    content = io.BytesIO()
    Image.new("RGB", size, colour).save(content, kind)
    return content.getvalue()


RED, BLUE = _picture("red"), _picture("blue", (64, 64), "jpeg")


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """Reading ends after a second, which a busy machine may take for nothing."""
    monkeypatch.setattr(images, "MAX_SECONDS", 60.0)


@pytest.mark.unit
def test_images(tmp_path):
    labelled = Privacy(label="label")
    train = [example(image=RED, label=1), example(image=BLUE, label=0)]
    train += [example(image=RED, label=1), example(image=b"\x89PNG\r\n\x1a\n?")]
    item = write_examples(tmp_path, train=train, eval=[example(image=RED, label=1)])
    found: Any = images.samples(item, labelled)
    json.dumps(found)
    assert (found["records"], found["complete"]) == ({"train": 4, "eval": 1}, True)
    (feature,) = found["features"]
    counts = {x["split"]: (x["images"], x["sizes"]) for x in feature["splits"]}
    sizes = {"PNG 9 x 5": 2, "JPEG 64 x 64": 1}
    assert counts == {"train": (3, sizes), "eval": (1, {"PNG 9 x 5": 1})}
    assert [row["class"] for row in feature["gallery"]] == ["0", "1"]
    shown = feature["gallery"][1]["images"][0]
    assert shown["data"].startswith("data:image/png;base64,")
    assert (shown["record"], shown["width"], shown["split"]) == (1, 9, "train")


@pytest.mark.tf
def test_an_image_is_also_shown_as_the_model_gets_it(tmp_path):
    fit = {"height": 9, "width": 9, "channels": 1, "resize": "fit"}
    item = write_examples(tmp_path, train=[example(image=RED)])
    found: Any = images.samples(item, Privacy(images={"image": fit}))
    shown = found["features"][0]["decoded"][0]
    pixels = Image.open(io.BytesIO(b64decode(shown["data"].partition(",")[2])))
    # Of 9 x 5 pixels, with two rows of margin above and below.
    assert [pixels.getpixel((4, y)) for y in range(9)] == [0, 0, *[76] * 5, 0, 0]


@pytest.mark.unit
@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([[b"cat", b"dog"], [b"dog"], None], ["cat, dog", "dog", None]),
        ([[0, 1, 1], [1, 0, 0], [0, 1, 1]], ["0, 1, 1", "1, 0, 0"]),
        ([2.5, 1.25, 7.0], [""]),
    ],
)
def test_samples_are_grouped_by_all_labels_and_not_by_numbers(
    tmp_path, labels, classes
):
    records = [
        example(
            image=_picture((i, 0, 0)), **({} if label is None else {"label": label})
        )
        for i, label in enumerate(labels)
    ]
    item = write_examples(tmp_path, train=records, eval=[example(image=RED, label=9)])
    found: Any = images.samples(item, Privacy(label="label"))
    gallery = {row["class"]: row["images"] for row in found["features"][0]["gallery"]}
    gallery.pop("9")
    assert [*gallery] == classes
    assert sum(map(len, gallery.values())) == 3


@pytest.mark.unit
@pytest.mark.parametrize(
    ("privacy", "expected"),
    [
        (Privacy(private=True), "nothing"),
        (Privacy(sensitive=["image"]), "counts"),
        (Privacy(), "all"),
    ],
)
def test_images_that_may_not_be_shown(tmp_path, privacy, expected):
    item = write_examples(tmp_path, train=[example(image=RED)] * 2)
    found: Any = images.samples(item, privacy)
    assert ("data:image" in json.dumps(found)) == (expected == "all")
    assert bool(found["features"]) == (expected != "nothing")


@pytest.mark.unit
def test_a_thumbnail_is_small_and_has_nothing_else_of_the_file():
    secret = io.BytesIO()
    exif = Image.Exif()
    exif[0x010E] = "SECRET"
    Image.effect_noise((900, 600), 90).save(secret, "jpeg", exif=exif)
    assert b"SECRET" in secret.getvalue()
    found = _described(secret.getvalue())
    assert (found["width"], found["height"], found["format"]) == (900, 600, "JPEG")
    assert len(found["data"]) < 4100
    assert _described(RED[:-30])["data"] is None


def _described(data):
    image = images.open_image(data)
    assert image is not None
    return images.describe_image(image)


@pytest.mark.unit
def test_examples_without_images_and_reading_within_limits(tmp_path, monkeypatch):
    item = write_examples(tmp_path / "a", train=[example(text=b"BMW", number=1)] * 200)
    assert images.samples(item, Privacy()) is None
    monkeypatch.setattr(images, "MAX_RECORDS", 10)
    item = write_examples(tmp_path / "b", train=[example(image=RED)] * 50)
    found: Any = images.samples(item, Privacy())
    assert (found["records"], found["complete"]) == ({"train": 10}, False)
