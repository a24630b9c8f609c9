"""The samples document: galleries, counts and duplicates of images."""

from __future__ import annotations

import base64
import io
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw

from sluice.record.documents import samples_document as module
from sluice.record.documents.example_records import ExampleReader
from sluice.record.documents.image_sample import (
    THUMBNAIL_BYTES,
    read_image,
    thumbnail,
)
from sluice.record.documents.privacy import Privacy
from sluice.record.documents.samples_document import samples_document
from sluice.tfrecords import tfrecord
from sluice.tfrecords.tf_example_pb2 import Example

pytestmark = pytest.mark.unit

LABELLED = Privacy(label="label")


def picture(seed: int, size: int = 32, kind: str = "png", **options: Any) -> bytes:
    """Returns an image of random circles."""
    rng = random.Random(seed)
    image = Image.new("RGB", (size, size), (rng.randrange(256), 40, 200))
    draw = ImageDraw.Draw(image)
    for _ in range(6):
        x, y, radius = (rng.random() * size * part for part in (1, 1, 0.3))
        colour = tuple(rng.randrange(256) for _ in range(3))
        draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
    content = io.BytesIO()
    image.save(content, kind, **options)
    return content.getvalue()


def noise(size: int) -> bytes:
    """Returns an image that hardly compresses."""
    content = io.BytesIO()
    pixels = random.Random(1).randbytes(size * size * 3)
    Image.frombytes("RGB", (size, size), pixels).save(content, "png")
    return content.getvalue()


def example(image: bytes, label: int | str | None = None) -> bytes:
    message = Example()
    message.features.feature["image"].bytes_list.value.append(image)
    if isinstance(label, int):
        message.features.feature["label"].int64_list.value.append(label)
    elif label is not None:
        message.features.feature["label"].bytes_list.value.append(label.encode())
    return message.SerializeToString()


def write(folder: Path, **splits: Sequence[bytes]) -> tuple[str, dict[str, Any]]:
    """Writes an artifact; returns its URI and properties."""
    for split, records in splits.items():
        (folder / f"Split-{split}").mkdir(parents=True)
        tfrecord.write(folder / f"Split-{split}" / "data-00000-of-00001.gz", records)
    # As TFX's ExampleGens set them.
    names = json.dumps(list(splits))
    return str(folder), {"split_names": names, "payload_format": "FORMAT_TF_EXAMPLE"}


def document(artifact: tuple[str, Any], privacy: Privacy = LABELLED) -> dict[str, Any]:
    found = samples_document(*artifact, privacy)
    assert found is not None
    json.dumps(found)
    return found


def test_a_gallery_has_some_images_of_each_class(tmp_path: Path) -> None:
    images = [example(picture(i), i % 11) for i in range(110)]
    artifact = write(tmp_path, train=images[:100], eval=images[100:])
    found = document(artifact)
    assert found["splits"] == [
        {"split": "train", "records": 100, "complete": True, "decoded": 100},
        {"split": "eval", "records": 10, "complete": True, "decoded": 10},
    ]
    (feature,) = found["features"]
    assert [item["class"] for item in feature["gallery"]] == [*map(str, range(11))]
    assert {len(item["images"]) for item in feature["gallery"]} == {8}
    shown = feature["gallery"][3]["images"][0]
    data = shown.pop("data")
    assert shown == {
        "split": "train",
        "file": "Split-train/data-00000-of-00001.gz",
        "record": 4,
        "class": "3",
        "width": 32,
        "height": 32,
        "format": "png",
    }
    kind, _, content = data.partition(",")
    assert kind == "data:image/png;base64"
    decoded = Image.open(io.BytesIO(base64.b64decode(content)))
    assert decoded.size == (32, 32)


def test_splits_are_counted(tmp_path: Path) -> None:
    images = [
        picture(1),
        picture(2, size=48),
        picture(3, kind="jpeg"),
        picture(4)[:60],
        b"\x89PNG\r\n\x1a\n",
    ]
    artifact = write(tmp_path, train=[example(image, 1) for image in images])
    (feature,) = document(artifact)["features"]
    (split,) = feature["splits"]
    assert (split["images"], split["undecodable"]) == (3, 2)
    assert split["formats"] == {"png": 2, "jpeg": 1}
    assert split["channels"] == {"3": 3}
    assert split["sizes"] == [
        {"width": 32, "height": 32, "count": 2},
        {"width": 48, "height": 48, "count": 1},
    ]
    lengths = sorted(map(len, images[:3]))
    assert split["bytes"] == {
        "min": lengths[0],
        "median": lengths[1],
        "max": lengths[2],
    }
    assert sum(split["brightness"]["counts"]) == 3
    assert len(split["brightness"]["edges"]) == 17


def test_brightness_is_the_mean_gray_value() -> None:
    for gray in (0, 100, 255):
        content = io.BytesIO()
        Image.new("L", (40, 30), gray).save(content, "png")
        sample = read_image(content.getvalue())
        assert sample is not None
        assert (sample.brightness, sample.hash) == (gray, None)


def test_duplicates_within_and_across_splits(tmp_path: Path) -> None:
    jpeg = picture(7, size=96, kind="jpeg", quality=90)
    again = io.BytesIO()
    Image.open(io.BytesIO(jpeg)).resize((80, 80)).save(again, "jpeg", quality=70)
    train = [example(picture(i), 0) for i in (1, 2, 3, 3)]
    evaluated = [example(picture(1), 1), example(again.getvalue(), 0)]
    artifact = write(tmp_path, train=[*train, example(jpeg, 0)], eval=evaluated)
    (feature,) = document(artifact)["features"]
    exact, near = feature["duplicates"]["exact"], feature["duplicates"]["near"]
    assert (exact["compared"], exact["groups"], exact["images"]) == (7, 2, 4)
    assert (exact["across_splits"], exact["across_classes"]) == (1, 1)
    first, second = exact["examples"]
    places = [(item["split"], item["record"]) for item in first["images"]]
    assert places == [("train", 1), ("eval", 1)]
    assert [item["record"] for item in second["images"]] == [3, 4]
    assert all(item["data"] for item in first["images"])
    assert (near["compared"], near["groups"], near["across_splits"]) == (5, 1, 1)
    (group,) = near["examples"]
    assert group["distance"] <= 3
    assert [item["split"] for item in group["images"]] == ["train", "eval"]


def test_different_images_are_no_duplicates(tmp_path: Path) -> None:
    artifact = write(tmp_path, train=[example(picture(i)) for i in range(200)])
    (feature,) = document(artifact, Privacy())["features"]
    assert feature["duplicates"]["near"]["groups"] == 0
    (unknown,) = feature["gallery"]
    assert (unknown["class"], len(unknown["images"])) == (None, 24)


def test_many_equal_images_are_bounded(tmp_path: Path) -> None:
    images = [example(picture(i % 30)) for i in range(300)]
    (feature,) = document(write(tmp_path, train=images), Privacy())["features"]
    exact = feature["duplicates"]["exact"]
    assert (exact["groups"], exact["images"], len(exact["examples"])) == (30, 300, 10)
    assert len(exact["examples"][0]["images"]) == 6
    assert exact["examples"][0]["images_left_out"] == 4


def test_a_sensitive_feature_has_counts_only(tmp_path: Path) -> None:
    artifact = write(tmp_path, train=[example(picture(1), 0)] * 3)
    found = document(artifact, Privacy(sensitive={"image"}, label="label"))
    (feature,) = found["features"]
    assert (feature["sensitive"], feature["gallery"]) == (True, [])
    exact = feature["duplicates"]["exact"]
    assert (exact["groups"], exact["examples"]) == (1, [])
    assert "data:image" not in json.dumps(found)


def test_private_data_is_not_read(tmp_path: Path) -> None:
    found = document((str(tmp_path / "nowhere"), {}), Privacy(private=True))
    assert (found["private"], found["splits"], found["features"]) == (True, [], [])


def test_tables_have_no_samples(tmp_path: Path) -> None:
    message = Example()
    message.features.feature["company"].bytes_list.value.append(b"BMW Motors")
    message.features.feature["fare"].float_list.value.append(1.0)
    artifact = write(tmp_path, train=[message.SerializeToString()] * 200)
    assert samples_document(*artifact, Privacy()) is None
    parquet = (artifact[0], {**artifact[1], "payload_format": "FORMAT_PARQUET"})
    assert samples_document(*parquet, Privacy()) is None


def test_reading_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DECODED", 40)
    monkeypatch.setattr(module, "MAX_HASHED", 70)
    images = [example(picture(i), i) for i in range(100)]
    artifact = write(tmp_path, train=images, eval=images[:50])
    found = document(artifact)
    assert found["splits"] == [
        {"split": "train", "records": 70, "complete": False, "decoded": 40},
        {"split": "eval", "records": 50, "complete": True, "decoded": 40},
    ]
    (feature,) = found["features"]
    assert (len(feature["gallery"]), feature["classes_left_out"]) == (20, 20)
    assert feature["duplicates"]["exact"]["across_splits"] == 50
    monkeypatch.setattr(module, "MAX_SECONDS", 0.0)
    found = document(artifact)
    assert [item["records"] for item in found["splits"]] == [1, 0]
    assert not any(item["complete"] for item in found["splits"])


def test_a_damaged_file_leaves_its_split_incomplete(tmp_path: Path) -> None:
    images = [example(picture(i), "cat") for i in range(4)]
    uri, properties = write(tmp_path, train=images, eval=images)
    tfrecord.write(tmp_path / "Split-train" / "more.gz", images)
    path = tmp_path / "Split-train" / "more.gz"
    path.write_bytes(path.read_bytes()[:-200])
    found = document((uri, properties))
    train, evaluated = found["splits"]
    assert not train["complete"]
    assert train["records"] >= 4
    assert evaluated == {"split": "eval", "records": 4, "complete": True, "decoded": 4}


def test_shards_are_read_in_turn(tmp_path: Path) -> None:
    folder = tmp_path / "Split-train"
    folder.mkdir()
    for shard in range(3):
        records = [example(b"%d" % shard)] * 100
        tfrecord.write(folder / f"data-{shard}.gz", records)
    reader = ExampleReader(str(tmp_path), ["train"])
    first = [record.file for _, record in zip(range(96), reader, strict=False)]
    assert set(first) == {f"Split-train/data-{shard}.gz" for shard in range(3)}
    assert reader.incomplete == {"train"}
    assert len([*ExampleReader(str(tmp_path), ["train"])]) == 300


def test_thumbnails_are_small_and_made_anew() -> None:
    data = thumbnail(noise(200))
    assert data is not None
    content = base64.b64decode(data.partition(",")[2])
    assert len(content) <= THUMBNAIL_BYTES
    assert Image.open(io.BytesIO(content)).size == (64, 64)
    exif = Image.Exif()
    exif[0x010E] = "SECRET"
    tagged = thumbnail(picture(1, kind="jpeg", exif=exif))
    assert tagged is not None
    assert b"SECRET" not in base64.b64decode(tagged.partition(",")[2])


def test_a_huge_image_is_not_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "sluice.record.documents.image_sample._open",
        lambda *_: pytest.fail("was decoded"),
    )
    header = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR"
    size = (60_000).to_bytes(4, "big") * 2
    bomb = header + size + b"\x08\x02\0\0\0"
    assert read_image(bomb) is None
    assert thumbnail(bomb) is None
