"""Published and own files become records: what is written is read, damage is named."""

from __future__ import annotations

import gzip
import io
import os
import struct

import numpy as np
import pytest
from PIL import Image

from sample_data import catalog
from sluice.errors import DataError, UsageError
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse

pytestmark = pytest.mark.unit

FLOWERS = ["daisy", "dandelion", "roses", "sunflowers", "tulips"]


def values(record):
    """The values of each feature; a single one by itself."""
    found = {}
    for name, feature in parse(record).features.feature.items():
        listed = list(getattr(feature, feature.WhichOneof("kind")).value)
        found[name] = listed[0] if len(listed) == 1 else listed
    return found


def made_of(name, source, target, **options):
    """Makes a data set; returns its records, and their number by split."""
    made = catalog.make(name, target, source=source, **options)
    records = [
        values(record)
        for shard in made.shards
        for record in tfrecord.read(target / shard.name)
    ]
    return records, [made.records(split) for split in ("train", "eval", "test")]


def pixels_of(record):
    return np.asarray(Image.open(io.BytesIO(record["image"])))


def counted(images, labels):
    pairs = zip(images, labels, strict=True)
    return sorted((np.asarray(image).tobytes(), int(label)) for image, label in pairs)


@pytest.fixture
def mnist(tmp_path):
    """A small MNIST; the files of its test split are not compressed."""
    generator, folder = np.random.default_rng(5), tmp_path / "mnist"
    folder.mkdir()
    arrays = []
    for prefix, count, suffix in (("train", 120, ".gz"), ("t10k", 20, "")):
        images = generator.integers(0, 256, (count, 28, 28), np.uint8)
        labels = np.arange(count, dtype=np.uint8) % 10
        for name, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            data = header + array.tobytes()
            path = folder / f"{prefix}-{name}-ubyte{suffix}"
            path.write_bytes(gzip.compress(data) if suffix else data)
        arrays.append((images, labels))
    return folder, arrays


def test_mnist(mnist, tmp_path):
    folder, arrays = mnist
    records, counts = made_of("mnist", folder, tmp_path / "made")
    assert counts == [110, 10, 20]
    images, labels = (np.concatenate(parts) for parts in zip(*arrays, strict=True))
    found = counted(map(pixels_of, records), [x["label"] for x in records])
    assert found == counted(images, labels)


@pytest.fixture
def cifar10(tmp_path):
    """The folder of the binary batches, small ones."""
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    generator = np.random.default_rng(1)
    for name in [*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]:
        rows = generator.integers(0, 256, (4, 3073), np.uint8)
        rows[:, 0] %= 10
        (folder / f"{name}.bin").write_bytes(rows.tobytes())
    return folder


def test_cifar10(cifar10, tmp_path):
    rows = np.concatenate(
        [np.frombuffer(x.read_bytes(), np.uint8) for x in cifar10.iterdir()]
    ).reshape(-1, 3073)
    images = rows[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    for index, source in enumerate((cifar10, tmp_path)):
        records, counts = made_of("cifar10", source, tmp_path / f"made-{index}")
        assert counts == [18, 2, 4]
        found = counted(map(pixels_of, records), [x["label"] for x in records])
        assert found == counted(images, rows[:, 0])


def encoded(number=0, size=(20, 14), kind="JPEG"):
    shape = (size[1], size[0], 3)
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


def test_images_keep_their_bytes(pets, tmp_path):
    (pets / "cat" / "6.PNG").write_bytes(encoded(kind="PNG"))
    for hidden in (pets / ".DS_Store", pets / "cat" / "Thumbs.db"):
        hidden.write_bytes(b"x")
    records, counts = made_of("images", pets, tmp_path / "made")
    assert all(counts)
    assert sorted((x["label"], x["image"]) for x in records) == sorted(
        (path.parent.name.encode(), path.read_bytes())
        for path in pets.glob("*/[0-9].*")
    )


def test_splits_of_images_that_are_there_are_kept(tmp_path):
    for split in ("train", "validation", "test"):
        fill(tmp_path / "pets" / split, ["cat", "dog"], count=2)
    (tmp_path / "pets" / "test" / "dog" / "1.jpg").unlink()
    _, counts = made_of("images", tmp_path / "pets", tmp_path / "made")
    assert counts == [4, 4, 3]


def test_flowers_have_the_features_of_the_public_records(tmp_path):
    photos = fill(tmp_path / "flower_photos", FLOWERS, size=(260, 400))
    (photos / "LICENSE.txt").write_text("CC BY")
    records, _ = made_of("flowers", tmp_path, tmp_path / "made")
    assert len(records) == 30
    for record in records:
        number = record["class"]
        assert record["label"] == FLOWERS[number].encode()
        assert record["one_hot_class"] == [float(i == number) for i in range(5)]
        assert record["size"] == [192, 192]
        with Image.open(io.BytesIO(record["image"])) as image:
            assert (image.format, *image.size) == ("JPEG", 192, 192)


def cut(path):
    path.write_bytes(path.read_bytes()[:-5])


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("train-images-idx3-ubyte.gz", "this file is damaged"),
        ("t10k-labels-idx1-ubyte", "20 images have 15 labels"),
    ],
)
def test_a_damaged_file_is_named_and_nothing_written(mnist, tmp_path, file, words):
    folder, _ = mnist
    cut(folder / file)
    with pytest.raises(DataError) as caught:
        catalog.make("mnist", tmp_path / "made", source=folder)
    assert str(folder) in str(caught.value) and words in str(caught.value)
    assert not (tmp_path / "made").exists()


@pytest.fixture
def bad_pets(pets):
    cut(pets / "dog" / "2.jpg")
    for name in "bcdefg":
        (pets / "cat" / f"{name}.txt").write_text("a note")
    os.mkfifo(pets / "cat" / "pipe.png")
    return pets


def test_all_bad_files_are_named(bad_pets, tmp_path):
    with pytest.raises(DataError) as caught:
        catalog.make("images", tmp_path / "made", source=bad_pets)
    said = str(caught.value)
    assert "8 of 19 files are no images that can be decoded" in said
    assert f"where:    {bad_pets}" in said and "--skip-bad" in said
    assert "- cat/b.txt: this is no JPEG or PNG\n" in said and "and 3 more" in said
    assert not (tmp_path / "made").exists()


def test_bad_files_are_left_out_and_counted(bad_pets, tmp_path):
    lines: list[str] = []
    made = catalog.make(
        *("images", tmp_path / "made"),
        source=bad_pets,
        skip_bad=True,
        report=lines.append,
    )
    assert sum(shard.records for shard in made.shards) == 12 - 1
    assert "images: 8 bad or other files are left out" in lines
    with pytest.raises(UsageError, match="--skip-bad is for images"):
        catalog.make("mnist", tmp_path / "mnist", source=bad_pets, skip_bad=True)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mnist", "No such file"),
        ("images", "no folders of images, one per class"),
    ],
)
def test_missing_files_are_named(tmp_path, name, words):
    source = tmp_path / "source"
    source.mkdir()
    with pytest.raises(UsageError) as caught:
        catalog.make(name, tmp_path / "made", source=source)
    assert words in str(caught.value)
