"""``init``: proposed configs and schemas, and data that is refused."""

from __future__ import annotations

import io
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from ruamel.yaml import YAML

from pipeline.config.load import load_config
from pipeline.config.validate import ValidConfig, validate_config
from runners.operations.init import InitRequest, init
from sample_data.tf_example import encode
from schemas import loader
from sluice.errors import ConfigError, DataError, UsageError
from sluice.project import own_root
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit

Init = Callable[..., Any]


def propose(name: str, pattern: str, directory: str | None = None, **options: Any):
    """Does what ``sluice init`` does."""
    request = InitRequest(name=name, pattern=pattern, directory=directory, **options)
    return init(request)


def valid(name: str) -> ValidConfig:
    return validate_config(load_config(name))


def test_the_proposal_for_digits_equals_the_reviewed_schema(project, here):
    pictures = here / "data" / "my pictures"
    pictures.mkdir(parents=True)
    for file in sorted((project / "data" / "digits").glob("*.tfrecord")):
        shutil.copy(file, pictures / file.name.replace("eval", "numbers val"))

    result = propose("pictures", "data/my pictures/*")

    assert result.label.name == "label" and result.proposal.label.classes == 10
    assert result.label.why.startswith("its name is 'label'")
    config = load_config("pictures")
    assert config.root == here
    assert config.data.patterns == {
        "train": "train-*",
        "eval": "numbers val-*",
        "test": "test-*",
    }
    assert config.data.dir == "data/my pictures"
    found = valid("pictures")
    assert found.warnings == ()
    assert found.config.label.classes == tuple(range(10))
    assert found.config.model == "cnn"
    image: Any = (found.config.features or {})["image"]
    assert (image.height, image.width, image.channels) == (8, 8, 1)
    assert config.examples.images is not None
    ours = loader.load(own_root() / "schemas" / "digits" / "schema.pbtxt")
    for feature in ours.feature:
        # What is compared over time is for a person to say.
        feature.ClearField("drift_comparator")
    assert found.schema == ours


def test_files_without_splits_are_split_by_hash(here, write_table):
    for number in range(3):
        write_table(here / "all" / f"part-{number}", 60 * number)

    propose("clicks", "part-*", "all")

    data = valid("clicks").config.data
    assert (data.dir, data.files) == ("all", "part-*")
    assert data.split_names == ["train", "eval", "test"]


def test_dated_folders_become_spans(here, write_table):
    for day in ("20240101", "20240102"):
        for split in ("train", "eval"):
            write_table(here / "data" / day / f"{split}-0", int(day) % 7)

    propose("clicks", "data/*/*")

    config = valid("clicks").config
    assert config.data.patterns == {
        "train": "{YYYY}{MM}{DD}/train-*",
        "eval": "{YYYY}{MM}{DD}/eval-*",
    }
    assert config.examples.window == 1
    assert config.examples.complete_when.marker is None


def test_a_marker_in_every_span_is_required(here, write_table):
    for day in ("20240101", "20240102"):
        write_table(here / "data" / day / "part-0", int(day) % 7)
        (here / "data" / day / "_SUCCESS").touch()

    propose("clicks", "data")

    assert valid("clicks").config.examples.complete_when.marker == "_SUCCESS"
    (here / "data" / "20240101" / "_SUCCESS").unlink()
    propose("clicks", "data", force=True)
    assert valid("clicks").config.examples.complete_when.marker is None


def test_a_sample_of_the_records_is_a_warning(here, write_table):
    write_table(here / "d" / "train-0", 0, count=10_001)
    write_table(here / "d" / "eval-0", 0)

    result = propose("clicks", "d")

    sampled = result.proposal.sampled
    assert sampled == "the first 10,000 records, at most, of 2 files"
    assert any("not all records were read" in item for item in result.warnings)


def test_data_outside_the_project_has_an_absolute_path(tmp_path, here, write_table):
    write_table(tmp_path / "elsewhere" / "part-0", 0)

    propose("clicks", "../elsewhere/*")

    assert load_config("clicks").data.dir == str(tmp_path / "elsewhere")


def test_existing_files_are_replaced_only_with_force(clicks, here):
    config = here / "configs" / "clicks.yaml"
    config.parent.mkdir()
    config.write_text("mine")

    with pytest.raises(UsageError, match="already") as caught:
        propose("clicks", "data/the clicks/*")
    assert caught.value.where == str(config)
    assert "--force" in (caught.value.hint or "")
    assert config.read_text() == "mine"
    assert not (here / "schemas").exists()

    propose("clicks", "data/the clicks/*", force=True)
    assert YAML(typ="safe").load(config.read_text())["name"] == "clicks"


def test_invalid_proposals_are_removed(clicks, here, monkeypatch):
    def refuse(config: Any) -> None:
        raise ConfigError("refused", where=config.origin.file)

    written = [here / "configs/clicks.yaml", here / "schemas/clicks/schema.pbtxt"]
    with monkeypatch.context() as patch:
        patch.setattr("runners.operations.init.validate_config", refuse)
        with pytest.raises(ConfigError, match="refused"):
            propose("clicks", "data/the clicks")
    assert not any(path.exists() for path in written)

    propose("clicks", "data/the clicks")
    before = [path.read_text() for path in written]
    monkeypatch.setattr("runners.operations.init.validate_config", refuse)
    options: Any = {"label": "colour", "force": True}
    with pytest.raises(ConfigError, match="refused"):
        propose("clicks", "data/the clicks/t*", **options)
    assert [path.read_text() for path in written] == before


def test_records_are_not_split_by_a_float_feature(here, write_table):
    write_table(here / "d" / "part-0", 0, count=300, user_id=lambda n: float(n % 30))

    propose("clicks", "d")

    hashed = valid("clicks").config.data.hash_splits
    assert hashed is not None
    assert hashed.by is None


@pytest.mark.parametrize(
    ("name", "hint"),
    [("My Clicks", "sluice init my-clicks ..."), ("../x", "sluice init x ...")],
)
def test_an_invalid_name_is_refused(clicks, name, hint):
    with pytest.raises(UsageError, match="is not a valid pipeline name") as caught:
        propose(name, "data/the clicks/*")
    assert caught.value.hint == hint
    assert "lower-case letters" in (caught.value.expected or "")


def test_an_unclear_label_is_refused_with_a_command(here, write_table):
    write_table(here / "d" / "part 0", 0, clicked=lambda n: n % 4, day=lambda n: n % 7)

    with pytest.raises(UsageError, match="looks like the label") as caught:
        propose("clicks", "d/part*")
    assert caught.value.hint == (
        "sluice init clicks --examples 'd/part*' --label clicked"
    )
    assert not (here / "configs").exists()

    propose("clicks", "d/part*", label="day")
    assert valid("clicks").config.label.classes == tuple(range(7))


def test_an_invalid_record_is_named(clicks, here):
    file = clicks / "train of today.tfrecord.gz"
    tfrecord.write(file, [encode({"x": [1.0]}), b"{json: 1}"])

    with pytest.raises(DataError, match="not a tf.Example") as caught:
        propose("clicks", "data/the clicks/*")
    assert caught.value.where == f"{file}, record 2"
    assert not (here / "configs").exists()


def picture(mode: str, size: tuple[int, int], kind: str = "JPEG") -> bytes:
    file = io.BytesIO()
    Image.effect_noise(size, 90.0).convert(mode).save(file, kind)
    return file.getvalue()


def pictures(path: Path, images: list[bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    records = (
        encode({"photo": [images[n % len(images)]], "label": [n // 2 % 2]})
        for n in range(40)
    )
    tfrecord.write(path, records)


@pytest.mark.parametrize(
    ("images", "size", "says"),
    [
        (
            [picture("RGB", (192, 192))],
            (96, 96, 3),
            "JPEG, 192 x 192 pixels, 3 channels; resized to 96 x 96, as the CNN "
            "grows with the image; other sizes can be set",
        ),
        ([picture("RGB", (96, 50))], (50, 96, 3), "JPEG, 96 x 50 pixels, 3 channels"),
        (
            [picture("L", (30, 20)), picture("RGB", (30, 20))],
            (20, 30, 3),
            "JPEG, 30 x 20 pixels, 1 or 3 channels; decoded to 3 channels",
        ),
        (
            [picture("L", (30, 20), "BMP")],
            (20, 30, 3),
            "BMP, 30 x 20 pixels, 1 channel; decoded to 3 channels",
        ),
        (
            [picture("L", (30, 20)), picture("L", (30, 20)), picture("L", (8, 9))],
            (20, 30, 1),
            "JPEG, mostly 30 x 20 pixels, 2 sizes, 1 channel; resized to 30 x 20",
        ),
    ],
)
def test_resized_images_are_explained_in_result_and_config(here, images, size, says):
    for split in ("train", "eval"):
        pictures(here / "d" / f"{split}-0", images)

    (feature,) = propose("photos", "d").to_dict()["features"]

    height, width, channels = size
    spec = {"kind": "image", "height": height, "width": width, "channels": channels}
    assert (feature["why"], feature["spec"]) == (says, spec)
    written = (here / "configs" / "photos.yaml").read_text()
    assert says in re.sub(r"\n *# ", " ", written)
    assert valid("photos").config.model == "cnn"


def follow(words: list[str]) -> None:
    """Does what a suggested command line does."""
    options = {"--examples": "pattern", "--dir": "directory", "--label": "label"}
    given: Any = {
        options[key]: value for key, value in zip(words[1::2], words[2::2], strict=True)
    }
    init(InitRequest(name=words[0], **given))


def followed(hint: str) -> list[str]:
    """Returns the arguments of the ``sluice init`` that a hint ends with."""
    return shlex.split(hint[hint.index("sluice init ") :])[2:]


def test_the_suggested_label_command_works(here):
    # With either of the first two as the label no feature would be left.
    refused: Any = {"label": lambda n: n / 7}
    only: Any = {"day": lambda n: n % 7}
    for name, columns in {"a": only, "b": {**only, **refused}}.items():
        path = here / name / "part-0"
        path.parent.mkdir()
        tfrecord.write(
            path,
            [
                encode({key: [column(n)] for key, column in columns.items()})
                for n in range(60)
            ],
        )

    with pytest.raises(UsageError, match="looks like the label") as caught:
        propose("clicks", "a")
    assert "--label" not in (caught.value.hint or "")

    with pytest.raises(UsageError, match="looks like the label") as caught:
        propose("clicks", "b")
    assert caught.value.examples == (
        "label: it is FLOAT; classes are whole numbers or strings",
    )
    follow(followed(caught.value.hint or ""))
    assert valid("clicks").config.label.feature == "day"


def test_an_unusable_label_is_refused_with_a_command(here, write_table):
    write_table(here / "d" / "part-0", 0)

    with pytest.raises(UsageError, match="'x' cannot be the label") as caught:
        propose("clicks", "d", label="x")
    follow(followed(caught.value.hint or ""))
    assert valid("clicks").config.label.feature == "clicked"


def test_a_missing_folder_is_refused_with_close_matches(here, write_table):
    for name in ("clicks", "sales", "trips"):
        for split in ("train", "eval"):
            write_table(here / "data" / name / f"{split}-0", 0)

    with pytest.raises(UsageError, match="matches no TFRecord file") as caught:
        propose("clicks", "data/nothere")
    assert caught.value.examples == ("clicks/", "sales/", "trips/")
    assert "--examples" not in (caught.value.hint or "")

    # All of the three have such files, and together they are no data set.
    with pytest.raises(UsageError, match="matches no TFRecord file") as caught:
        propose("clicks", "data/train-*")
    assert "--examples" not in (caught.value.hint or "")

    for name, wrong in {"a": "data/click", "b": "data/clik/*-0"}.items():
        with pytest.raises(UsageError, match="matches no TFRecord file") as caught:
            propose(name, wrong)
        options = (caught.value.hint or "").removeprefix("did you mean: ")
        follow([name, *shlex.split(options)])
        assert valid(name).config.data.dir == "data/clicks"


def test_data_without_a_usable_feature_is_refused(here, write_table):
    write_table(here / "d" / "part-0", 0, x=lambda n: 0.5, colour=lambda n: b"red")

    with pytest.raises(DataError, match="no feature can be used") as caught:
        propose("clicks", "d")
    assert caught.value.examples == (
        "colour: it has one value in all records that have it",
        "x: it has one value in all records that have it",
    )
    assert "docs/guide.md" in (caught.value.hint or "")
