"""MNIST, CIFAR-10 and flowers, end to end, on generated images of the same layout."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from pipeline.config.load import load_config
from sample_data import catalog
from serving.predictor import Predictor
from sluice.tfrecords import tfrecord
from sluice.tfrecords.parse_tf_example import parse
from sluice.workspace import locate

pytestmark = [pytest.mark.e2e, pytest.mark.acceptance]

FLOWERS = ("daisy", "dandelion", "roses", "sunflowers", "tulips")


def images_of_classes(
    count: int, side: int, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns noise with a bright bar at the place of its class, and the classes.

    Args:
      count: number of images.
      side: their height and width.
      classes: number of classes, which take turns.

    Returns:
      uint8 ``[count, side, side, 3]`` and uint8 ``[count]``.
    """
    pixels = np.random.default_rng(7).integers(0, 64, (count, side, side, 3), np.uint8)
    labels = np.arange(count, dtype=np.uint8) % classes
    width = side // classes
    for image, label in zip(pixels, labels, strict=True):
        image[:, label * width : (label + 1) * width] += 160
    return pixels, labels


def write_mnist(folder: Path) -> None:
    for part, count in (("train", 1800), ("t10k", 200)):
        pixels, labels = images_of_classes(count, 28, 10)
        for name, array in (("images-idx3", pixels[..., 0]), ("labels-idx1", labels)):
            header = struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape)
            (folder / f"{part}-{name}-ubyte").write_bytes(header + array.tobytes())


def write_cifar10(folder: Path) -> None:
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        pixels, labels = images_of_classes(100, 32, 10)
        planes = pixels.transpose(0, 3, 1, 2).reshape(len(labels), -1)
        content = np.hstack([labels[:, np.newaxis], planes]).tobytes()
        (folder / f"{name}.bin").write_bytes(content)


def write_flowers(folder: Path) -> None:
    for number, (pixels, label) in enumerate(
        zip(*images_of_classes(160, 192, 5), strict=True)
    ):
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "JPEG")
        path = folder / FLOWERS[label] / f"{number}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(file.getvalue())


WRITE = {"mnist": write_mnist, "cifar10": write_cifar10, "flowers": write_flowers}
NO_FLOOR = "evaluate.thresholds=[{metric: accuracy, lower_bound: 0.0}]"


@pytest.fixture(scope="module")
def make(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """Converts generated files of a data set; returns the folder of the records."""

    def make(name: str) -> Path:
        source = tmp_path_factory.mktemp(name)
        WRITE[name](source)
        folder = project / "data" / name
        catalog.make(name, folder, source=source)
        return folder

    return make


@pytest.fixture(scope="module")
def run(project: Path, run_config) -> Callable[..., Any]:
    """Runs a config, with the keyword arguments of ``load_config``."""

    def run(name: str, **options: Any) -> Any:
        config = load_config(name, cwd=project, **options)
        return run_config(config, locate(project, name))

    return run


def label_of(record: bytes) -> bytes:
    return parse(record).features.feature["label"].bytes_list.value[0]


def accuracy(record: Any) -> float:
    """Returns the accuracy on the test split of a model that was pushed."""
    assert record.status == "succeeded", record.error
    assert [gate.passed for gate in record.gates] == [True, True]
    assert record.pushes[0].state == "pushed"
    return record.gates[-1].rows[0].actual


def test_mnist_reaches_its_floor(make, run):
    make("mnist")

    assert accuracy(run("mnist")) >= 0.97


def test_cifar10(make, run):
    make("cifar10")
    brief = ["train.epochs=1", NO_FLOOR]
    record = run("cifar10", profile="quick", overrides=brief)

    assert 0 <= accuracy(record) <= 1
    assert Predictor(record.pushes[0].uri).features.keys() == {"image"}


def test_flowers_from_a_folder_with_the_names_of_the_public_files(make, run, tmp_path):
    shards = sorted(make("flowers").glob("*.tfrecord.gz"))
    assert len(shards) == 16
    # As many of each class in every file: so few records differ by chance otherwise.
    records = [record for shard in shards for record in tfrecord.read(shard)]
    records.sort(key=label_of)
    for number in range(16):
        own = records[number::16]
        tfrecord.write(tmp_path / f"flowers{number:02}-{len(own)}.tfrec", own)
    brief = ["train.epochs=1", "train.early_stopping=null", NO_FLOOR]
    overrides = [f"data.dir={tmp_path}", *brief]
    record = run("flowers", profile="flowers-public", overrides=overrides)

    assert 0 <= accuracy(record) <= 1
    predictor = Predictor(record.pushes[0].uri)
    # class and one_hot_class would give the label away.
    assert predictor.features.keys() == {"image"}
    test_files = sorted(tmp_path.glob("flowers1[3-5]*"))
    predicted = {row.label for row in predictor.predict_files(test_files)}
    assert predicted and predicted <= set(FLOWERS)
