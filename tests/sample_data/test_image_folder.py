"""Folders of images: bytes kept, flowers scaled, and what is no image named."""

import io
import os

import numpy as np
import pytest
from PIL import Image

from sample_data import catalog, image_folder
from sample_data.data_set import ALL, Source
from sample_data.image_folder import read_image, read_images
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

FLOWERS = ["daisy", "dandelion", "roses", "sunflowers", "tulips"]
SPLITS = ("train", "eval", "test")


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
    # Hidden files are passed over.
    (pets / ".DS_Store").write_bytes(b"x")
    (pets / "cat" / "Thumbs.db").write_bytes(b"x")
    made = catalog.make("images", tmp_path / "made", source=Source(pets))
    found = list(features_of(tmp_path / "made", made))
    names = ("label", "image")
    assert sorted(
        tuple(features[name].bytes_list.value[0] for name in names)
        for _, features in found
    ) == sorted(
        (path.parent.name.encode(), path.read_bytes())
        for path in pets.glob("*/[0-9].*")
    )
    assert {split for split, _ in found} == set(SPLITS)
    assert made.class_names == ("cat", "dog")


def test_splits_that_are_there_are_kept(tmp_path):
    pets = tmp_path / "pets"
    for split in ("train", "validation", "test"):
        fill(pets / split, ["cat", "dog"], count=2)
    (pets / "test" / "dog" / "1.jpg").unlink()
    made = catalog.make("images", tmp_path / "made", source=Source(pets))
    assert [made.records(split) for split in SPLITS] == [4, 4, 3]
    (pets / "test" / "dog").rename(pets / "test" / "wolf")
    with pytest.raises(DataError, match="not the expected classes") as caught:
        read_images(Source(pets))
    assert (caught.value.where, caught.value.actual) == (
        str(pets / "test"),
        "cat, wolf",
    )
    (pets / "validation").rename(tmp_path / "aside")
    with pytest.raises(DataError, match="not a complete set") as caught:
        read_images(Source(pets))
    assert caught.value.actual == "test, train"


def test_flowers_have_the_features_of_the_public_records(tmp_path):
    photos = fill(tmp_path / "flower_photos", FLOWERS, size=(260, 400))
    (photos / "LICENSE.txt").write_text("CC BY")
    for name, workers in (("made", 1), ("again", 3)):
        source, target = Source(tmp_path), tmp_path / name
        made = catalog.make("flowers", target, source=source, workers=workers)
    for path in (tmp_path / "made").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()
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
        with Image.open(io.BytesIO(features["image"].bytes_list.value[0])) as image:
            shown = image.format, image.mode, image.size
            assert shown == ("JPEG", "RGB", (192, 192))


def test_how_a_photo_becomes_a_flower(tmp_path):
    path, other, wide = (tmp_path / name for name in ("0.jpg", "0.png", "wide.png"))
    path.write_bytes(encoded(size=(192, 192)))
    other.write_bytes(encoded(size=(192, 192), kind="PNG"))
    # One of the right size keeps its bytes; of others the middle is kept.
    assert read_image(path, 192) == path.read_bytes()
    assert read_image(other, 192)[:2] == b"\xff\xd8"
    pixels = np.zeros((100, 300, 3), np.uint8)
    pixels[:, 100:200] = 255
    Image.fromarray(pixels).save(wide)
    with Image.open(io.BytesIO(read_image(wide, 192))) as image:
        assert np.asarray(image)[:, 8:-8].min() > 240


def write(content):
    return lambda path: path.write_bytes(content)


def link(path):
    path.symlink_to(path.parent)


NO_IMAGE = "not an image that can be decoded"


@pytest.mark.parametrize(
    ("name", "damage", "words", "where"),
    [
        ("owl", os.mkdir, "this class is empty", "owl"),
        ("dog/notes.txt", write(b"x"), "contains other files", "dog"),
        ("dog/puppies.jpg", os.mkdir, "contains other files", "dog"),
        ("dog/7.jpg", os.mkfifo, "contains other files", "dog"),
        ("stray.jpeg", write(encoded()), "outside the class folders", ""),
        ("dog/9.jpg", link, "symbolic link", "dog/9.jpg"),
        ("owl", link, "symbolic link", "owl"),
        ("train", link, "symbolic link", "train"),
        ("caf\udce9", os.mkdir, "its name is not UTF-8", "caf\udce9"),
        ("Dog", lambda path: fill(path.parent, ["Dog"]), "differ in case", ""),
        ("dog/5.jpg", write(encoded()[:-300]), NO_IMAGE, "dog/5.jpg"),
        ("dog/5.jpg", write(b""), NO_IMAGE, "dog/5.jpg"),
        ("dog/5.jpg", write(encoded(kind="GIF", mode="L")), NO_IMAGE, "dog/5.jpg"),
    ],
)
def test_a_bad_folder_is_named_and_nothing_is_written(
    pets, tmp_path, name, damage, words, where
):
    damage(pets / name)
    with pytest.raises(DataError, match=words) as caught:
        catalog.make("images", tmp_path / "made", source=Source(pets), workers=2)
    assert caught.value.where == str(pets / where)
    assert [path.name for path in tmp_path.iterdir()] in (
        ["pets"],
        LOCKED,
        LOCKED[::-1],
    )


LOCKED = ["pets", ".made.lock"]


def test_too_few_images_or_classes(tmp_path):
    with pytest.raises(UsageError, match="this is not a folder"):
        read_images(Source(tmp_path / "pets"))
    pets = fill(tmp_path / "pets", ["cat", "dog"], count=1)
    with pytest.raises(DataError, match="images has too few examples") as caught:
        catalog.make("images", tmp_path / "made", source=Source(pets))
    assert caught.value.actual == "2 in the part 'all' of the source"
    (pets / "cat").rename(tmp_path / "cat")
    with pytest.raises(DataError, match="not the expected classes"):
        read_images(Source(pets))


def test_an_image_that_declares_a_huge_size(pets, monkeypatch):
    monkeypatch.setattr(image_folder, "_MAX_PIXELS", 100)
    with pytest.raises(DataError, match="can be decoded") as caught:
        read_image(pets / "cat" / "0.jpg", None)
    assert str(caught.value.actual).startswith("20 x 14 pixels, ")


def test_another_source_makes_it_again(pets, tmp_path):
    made = tmp_path / "made"
    before = catalog.make("images", made, source=Source(pets))
    times = {path.name: path.stat().st_mtime_ns for path in made.iterdir()}
    assert catalog.make("images", made, source=Source(pets)) == before
    assert catalog.make("images", made) == before
    assert times == {path.name: path.stat().st_mtime_ns for path in made.iterdir()}
    assert len(read_images(Source(pets)).parts[ALL]) == 12
    (pets / "cat" / "0.jpg").write_bytes(encoded(77))
    after = catalog.make("images", made, source=Source(pets))
    assert after.source_sha256 != before.source_sha256
    catalog.verify(made)
