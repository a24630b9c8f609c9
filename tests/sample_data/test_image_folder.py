"""Folders of images: bytes kept, flowers scaled, and what is no image named."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest
from PIL import Image

from sample_data import catalog, image_folder
from sample_data.data_set import ALL, Source
from sample_data.image_folder import read_flowers, read_image, read_images
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

FLOWERS = ["daisy", "dandelion", "roses", "sunflowers", "tulips"]


def encoded(number=0, size=(20, 14), kind="JPEG", mode="RGB"):
    shape = (size[1], size[0], len(mode)) if len(mode) > 1 else (size[1], size[0])
    pixels = np.random.default_rng(number).integers(0, 256, shape, np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind)
    return file.getvalue()


def fill(folder, classes, count=6, **options):
    for index, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for number in range(count):
            content = encoded(100 * index + number, **options)
            (folder / name / f"{number}.jpg").write_bytes(content)
    return folder


@pytest.fixture
def pets(tmp_path):
    return fill(tmp_path / "pets", ["cat", "dog"])


def features_of(directory, made):
    for shard in made.shards:
        for record in tfrecord.read(directory / shard.name):
            yield shard.split, parse(record).features.feature


def test_images_keep_their_bytes(pets, tmp_path):
    (pets / "cat" / "6.PNG").write_bytes(encoded(kind="PNG", mode="L"))
    made = catalog.make("images", tmp_path / "made", source=Source(pets))

    expected = sorted(
        (path.parent.name.encode(), path.read_bytes()) for path in pets.glob("*/*")
    )
    found = list(features_of(tmp_path / "made", made))
    assert (
        sorted(
            (
                features["label"].bytes_list.value[0],
                features["image"].bytes_list.value[0],
            )
            for _, features in found
        )
        == expected
    )
    assert {split for split, _ in found} == {"train", "eval", "test"}
    assert all(features.keys() == {"image", "label"} for _, features in found)
    assert made.class_names == ("cat", "dog")


def test_splits_that_are_there_are_kept(tmp_path):
    for split in ("train", "validation", "test"):
        fill(tmp_path / "pets" / split, ["cat", "dog"], count=2)
    (tmp_path / "pets" / "test" / "dog" / "1.jpg").unlink()
    made = catalog.make("images", tmp_path / "made", source=Source(tmp_path / "pets"))

    assert [made.records(split) for split in ("train", "eval", "test")] == [4, 4, 3]


def test_incomplete_splits(tmp_path):
    fill(tmp_path / "train", ["cat", "dog"])
    fill(tmp_path / "test", ["cat", "dog"])

    with pytest.raises(DataError, match="not a complete set") as caught:
        read_images(Source(tmp_path))
    assert caught.value.actual == "test, train"


def test_other_classes_in_a_split(tmp_path):
    for split in ("train", "validation", "test"):
        fill(tmp_path / split, ["cat", "dog"], count=1)
    (tmp_path / "test" / "dog").rename(tmp_path / "test" / "wolf")

    with pytest.raises(DataError, match="not the expected classes") as caught:
        read_images(Source(tmp_path))
    assert caught.value.where == str(tmp_path / "test")
    assert caught.value.actual == "cat, wolf"


def test_flowers_have_the_features_of_the_public_records(tmp_path):
    photos = fill(tmp_path / "flower_photos", FLOWERS, size=(260, 400))
    (photos / "LICENSE.txt").write_text("CC BY")
    made = catalog.make("flowers", tmp_path / "made", source=Source(tmp_path))

    assert len(made.shards) == 16
    found = [features for _, features in features_of(tmp_path / "made", made)]
    assert len(found) == 30
    for features in found:
        assert features.keys() == {"image", "class", "label", "one_hot_class", "size"}
        (number,) = features["class"].int64_list.value
        assert list(features["label"].bytes_list.value) == [FLOWERS[number].encode()]
        one_hot = [float(index == number) for index in range(5)]
        assert list(features["one_hot_class"].float_list.value) == one_hot
        assert list(features["size"].int64_list.value) == [192, 192]
        (image,) = features["image"].bytes_list.value
        with Image.open(io.BytesIO(image)) as opened:
            assert (opened.format, opened.mode, opened.size) == (
                "JPEG",
                "RGB",
                (192, 192),
            )


def test_a_flower_of_the_right_size_keeps_its_bytes(tmp_path):
    path = tmp_path / "0.jpg"
    path.write_bytes(encoded(size=(192, 192)))
    other = tmp_path / "0.png"
    other.write_bytes(encoded(size=(192, 192), kind="PNG"))

    assert read_image(path, 192) == path.read_bytes()
    assert read_image(other, 192)[:2] == b"\xff\xd8"


def test_the_middle_of_a_photo_is_kept(tmp_path):
    pixels = np.zeros((100, 300, 3), np.uint8)
    pixels[:, 100:200] = 255
    path = tmp_path / "0.png"
    Image.fromarray(pixels).save(path)
    with Image.open(io.BytesIO(read_image(path, 192))) as image:
        scaled = np.asarray(image)

    assert scaled[:, 8:-8].min() > 240


def test_an_unknown_and_a_missing_flower(tmp_path):
    fill(tmp_path, [*FLOWERS[:4], "violets"], count=1)

    with pytest.raises(DataError, match="not the expected classes") as caught:
        read_flowers(Source(tmp_path))
    assert caught.value.actual == "daisy, dandelion, roses, sunflowers, violets"
    assert "tulips" in str(caught.value.expected)


def empty_class(pets):
    (pets / "owl").mkdir()
    return "this class is empty", pets / "owl"


def one_class(pets):
    (pets / "cat").rename(pets.parent / "cat")
    return "not the expected classes", pets


def other_file(pets):
    (pets / "dog" / "notes.txt").write_text("x")
    return "contains other files", pets / "dog"


def folder_in_a_class(pets):
    (pets / "dog" / "puppies.jpg").mkdir()
    return "contains other files", pets / "dog"


def pipe_in_a_class(pets):
    os.mkfifo(pets / "dog" / "7.jpg")
    return "contains other files", pets / "dog"


def image_of_no_class(pets):
    (pets / "stray.jpeg").write_bytes(encoded())
    return "outside the class folders", pets


def linked_image(pets):
    (pets / "dog" / "9.jpg").symlink_to(pets / "dog" / "0.jpg")
    return "symbolic link", pets / "dog" / "9.jpg"


def linked_class(pets):
    (pets / "owl").symlink_to(pets / "dog")
    return "symbolic link", pets / "owl"


def linked_part(pets):
    (pets / "train").symlink_to(pets)
    return "symbolic link", pets / "train"


def class_that_is_not_utf8(pets):
    os.mkdir(os.fsencode(pets) + b"/caf\xe9")
    return "its name is not UTF-8", os.fsdecode(os.fsencode(pets) + b"/caf\xe9")


def same_name_but_for_case(pets):
    fill(pets, ["Dog"], count=1)
    return "differ in case", pets


def same_name_but_for_encoding(pets):
    fill(pets, ["caf\u00e9", "cafe\u0301"], count=1)
    return "differ in case or encoding", pets


def truncated_image(pets):
    path = pets / "dog" / "5.jpg"
    path.write_bytes(path.read_bytes()[:-300])
    return "not an image that can be decoded", path


def empty_image(pets):
    path = pets / "dog" / "5.jpg"
    path.write_bytes(b"")
    return "not an image that can be decoded", path


def gif_image(pets):
    path = pets / "dog" / "5.jpg"
    path.write_bytes(encoded(kind="GIF", mode="L"))
    return "not an image that can be decoded", path


@pytest.mark.parametrize(
    "damage",
    [
        empty_class,
        one_class,
        other_file,
        folder_in_a_class,
        pipe_in_a_class,
        image_of_no_class,
        linked_image,
        linked_class,
        linked_part,
        class_that_is_not_utf8,
        same_name_but_for_case,
        same_name_but_for_encoding,
        truncated_image,
        empty_image,
        gif_image,
    ],
)
def test_a_bad_folder_is_named_and_nothing_is_written(pets, tmp_path, damage):
    words, where = damage(pets)
    with pytest.raises(DataError, match=words) as caught:
        catalog.make("images", tmp_path / "made", source=Source(pets), workers=2)

    assert caught.value.where == str(where)
    assert not (tmp_path / "made").exists()
    assert not (tmp_path / ".made.part").exists()


def test_hidden_files_are_passed_over(pets):
    (pets / ".DS_Store").write_bytes(b"x")
    (pets / "cat" / "Thumbs.db").write_bytes(b"x")

    assert len(read_images(Source(pets)).parts[ALL]) == 12


def test_an_image_that_declares_a_huge_size(pets, monkeypatch):
    monkeypatch.setattr(image_folder, "_MAX_PIXELS", 100)

    with pytest.raises(DataError, match="can be decoded") as caught:
        read_image(pets / "cat" / "0.jpg", None)
    assert str(caught.value.actual).startswith("20 x 14 pixels, ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_image_that_cannot_be_read(pets):
    (pets / "cat" / "0.jpg").chmod(0)

    with pytest.raises(UsageError, match="cannot be read"):
        read_image(pets / "cat" / "0.jpg", None)


def test_no_folder(tmp_path):
    with pytest.raises(UsageError, match="this is not a folder"):
        read_images(Source(tmp_path / "pets"))


def test_too_few_images_for_a_split(tmp_path):
    fill(tmp_path / "pets", ["cat", "dog"], count=1)

    with pytest.raises(DataError, match="images has too few examples") as caught:
        catalog.make("images", tmp_path / "made", source=Source(tmp_path / "pets"))
    assert caught.value.actual == "2 in the part 'all' of the source"
    assert not (tmp_path / "made").exists()


def test_two_makes_give_the_same_bytes_with_any_number_of_processes(tmp_path):
    photos = fill(tmp_path / "photos", FLOWERS, size=(64, 64))
    for name, workers in (("one", 1), ("two", 3)):
        catalog.make("flowers", tmp_path / name, source=Source(photos), workers=workers)

    one, two = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("one", "two")
    )
    assert one == two


def test_another_source_makes_it_again(pets, tmp_path):
    made = tmp_path / "made"
    before = catalog.make("images", made, source=Source(pets))
    times = {path.name: path.stat().st_mtime_ns for path in made.iterdir()}
    assert catalog.make("images", made, source=Source(pets)) == before
    assert catalog.make("images", made) == before
    assert times == {path.name: path.stat().st_mtime_ns for path in made.iterdir()}

    (pets / "cat" / "0.jpg").write_bytes(encoded(77))
    after = catalog.make("images", made, source=Source(pets))
    assert after.source_sha256 != before.source_sha256
    catalog.verify(made)
