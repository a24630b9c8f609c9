"""``sluice init``: proposed configs and schemas, and data that is refused."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil

import pytest
from PIL import Image

from pipeline.config.load import load_config
from pipeline.config.validate import validate_config
from runners.cli.init import init
from sample_data.tf_example import encode
from schemas import loader
from sluice.errors import ConfigError, DataError, UsageError
from sluice.project import own_root
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit


@pytest.fixture
def propose(here, capsys):
    """Does ``sluice init NAME --examples PATTERN --json``, and returns the object."""

    def propose(name, pattern, *options):
        words = [name, "--examples", pattern, "--json", *options]
        init.main(words, standalone_mode=False)
        return json.loads(capsys.readouterr().out)

    return propose


def valid(name):
    return validate_config(load_config(name))


def test_the_screen(clicks, here, capsys):
    init.main(["clicks", "--examples", "data/the clicks"], standalone_mode=False)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "looked at  all 180 records of 3 files",
        "splits     train train *, eval validation *, test test * "
        "(by the names of the files)",
        "label      clicked, 2 classes (its values are 0 and 1)",
        "model      wide_deep",
        "",
        "feature  seen as      used as     why",
        "colour   categorical  vocabulary  3 values, assumed complete",
        "x        number       numeric     0 to 14.2857, 101 values",
        "",
        "wrote configs/clicks.yaml",
        "wrote schemas/clicks/schema.pbtxt",
        "next: sluice validate clicks, then sluice run clicks",
    ]
    config = valid("clicks").config
    assert config.evaluate.thresholds[0].metric == "auc"
    assert sorted(p.name for p in (here / "configs").iterdir()) == ["clicks.yaml"]


def test_json(clicks, propose, here):
    found = propose("clicks", "data/the clicks/*")
    assert found["schema_version"] == 1
    assert found["config"] == str(here / "configs" / "clicks.yaml")
    assert found["label"]["feature"] == "clicked"
    assert found["splits"]["eval"] == "validation *"
    assert found["features"][0] == {
        "name": "colour",
        "seen_as": "categorical",
        "spec": {"kind": "vocabulary"},
        "why": "3 values, assumed complete",
    }


def test_the_proposal_for_digits_equals_the_reviewed_schema(project, here, propose):
    pictures = here / "data" / "my pictures"
    pictures.mkdir(parents=True)
    for file in sorted((project / "data" / "digits").glob("*.tfrecord")):
        shutil.copy(file, pictures / file.name.replace("eval", "numbers val"))

    label = propose("pictures", "data/my pictures/*")["label"]

    assert (label["feature"], label["classes"]) == ("label", 10)
    config = load_config("pictures")
    assert config.root == here
    assert config.data.patterns == {
        "train": "train-*",
        "eval": "numbers val-*",
        "test": "test-*",
    }
    found = valid("pictures")
    assert found.warnings == ()
    assert found.config.model == "cnn"
    ours = loader.load(own_root() / "schemas" / "digits" / "schema.pbtxt")
    for feature in ours.feature:
        # What is compared over time is for a person to say.
        feature.ClearField("drift_comparator")
    assert found.schema == ours


@pytest.mark.parametrize(
    ("files", "patterns", "marker"),
    [
        (["part-0", "part-1"], None, None),
        (
            [
                f"{day}/{split}-0"
                for day in (20240101, 20240102)
                for split in ("train", "eval")
            ],
            {"train": "{YYYY}{MM}{DD}/train-*", "eval": "{YYYY}{MM}{DD}/eval-*"},
            None,
        ),
        (["20240101/part-0", "20240102/part-0"], None, "_SUCCESS"),
    ],
    ids=["hash", "days", "marker"],
)
def test_layouts(here, write_table, propose, files, patterns, marker):
    for number, name in enumerate(files):
        write_table(here / "data" / name, 60 * number)
        if marker:
            (here / "data" / name).with_name(marker).touch()

    propose("clicks", "data")

    config = valid("clicks").config
    if patterns:
        assert config.data.patterns == patterns and config.examples.window == 1
    else:
        assert config.data.split_names == ["train", "eval", "test"]
    assert config.examples.complete_when.marker == marker


def test_data_outside_the_project_has_an_absolute_path(
    tmp_path, here, write_table, propose
):
    write_table(tmp_path / "elsewhere" / "part-0", 0, count=10_001)
    found = propose("clicks", "../elsewhere/*")
    assert load_config("clicks").data.dir == str(tmp_path / "elsewhere")
    assert any("not all records were read" in item for item in found["warnings"])


def test_the_project_root_is_found_from_a_subdirectory(
    clicks, propose, here, monkeypatch
):
    (here / "configs").mkdir()
    monkeypatch.chdir(clicks)
    propose("clicks", "*")
    assert (here / "configs" / "clicks.yaml").is_file()
    assert load_config("clicks").data.dir == "data/the clicks"


def test_existing_files_are_replaced_only_with_force(clicks, here, propose):
    config = here / "configs" / "clicks.yaml"
    config.parent.mkdir()
    config.write_text("mine")
    with pytest.raises(UsageError, match="already") as caught:
        propose("clicks", "data/the clicks/*")
    assert caught.value.where == str(config) and "--force" in str(caught.value.hint)
    assert config.read_text() == "mine" and not (here / "schemas").exists()
    propose("clicks", "data/the clicks/*", "--force")
    assert valid("clicks").config.name == "clicks"


def test_invalid_proposals_are_removed(clicks, here, propose, monkeypatch):
    def refuse(config):
        raise ConfigError("refused", where=config.origin.file)

    written = [here / "configs/clicks.yaml", here / "schemas/clicks/schema.pbtxt"]
    with monkeypatch.context() as patch:
        patch.setattr("runners.cli.init.validate_config", refuse)
        with pytest.raises(ConfigError, match="refused"):
            propose("clicks", "data/the clicks")
        assert not any(path.exists() for path in written)
    propose("clicks", "data/the clicks")
    before = [path.read_text() for path in written]
    monkeypatch.setattr("runners.cli.init.validate_config", refuse)
    with pytest.raises(ConfigError, match="refused"):
        propose("clicks", "data/the clicks/t*", "--label", "colour", "--force")
    assert [path.read_text() for path in written] == before


@pytest.mark.parametrize(
    ("name", "hint"),
    [("My Clicks", "sluice init my-clicks ..."), ("../x", "sluice init x ...")],
)
def test_an_invalid_name_is_refused(clicks, propose, name, hint):
    with pytest.raises(UsageError, match="is not a valid pipeline name") as caught:
        propose(name, "data/the clicks/*")
    assert caught.value.hint == hint
    assert "lower-case letters" in str(caught.value.expected)


def test_an_invalid_record_is_named(clicks, here, propose):
    file = clicks / "train of today.tfrecord.gz"
    tfrecord.write(file, [encode({"x": [1.0]}), b"{json: 1}"])
    with pytest.raises(DataError, match="not a tf.Example") as caught:
        propose("clicks", "data/the clicks/*")
    assert caught.value.where == f"{file}, record 2"
    assert not (here / "configs").exists()


def test_data_without_a_usable_feature_is_refused(here, write_table, propose):
    write_table(here / "d" / "part-0", 0, x=lambda n: 0.5, colour=lambda n: b"red")
    with pytest.raises(DataError, match="no feature can be used") as caught:
        propose("clicks", "d")
    assert caught.value.examples == (
        "colour: it has one value in all records that have it",
        "x: it has one value in all records that have it",
    )


def picture(mode, size, kind="JPEG"):
    file = io.BytesIO()
    Image.effect_noise(size, 90.0).convert(mode).save(file, kind)
    return file.getvalue()


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
def test_resized_images_are_explained_in_result_and_config(
    here, propose, images, size, says
):
    (here / "d").mkdir()
    for split in ("train", "eval"):
        records = (
            encode({"photo": [images[n % len(images)]], "label": [n // 2 % 2]})
            for n in range(40)
        )
        tfrecord.write(here / "d" / f"{split}-0", records)

    (feature,) = propose("photos", "d")["features"]

    height, width, channels = size
    spec = {"kind": "image", "height": height, "width": width, "channels": channels}
    assert (feature["why"], feature["spec"]) == (says, spec)
    written = (here / "configs" / "photos.yaml").read_text()
    assert says in re.sub(r"\n *# ", " ", written)
    assert valid("photos").config.model == "cnn"


def _follow(hint):
    """Does the ``sluice init`` that a hint ends with."""
    words = shlex.split(hint[hint.index("sluice init ") :])[2:]
    init.main([*words, "--json"], standalone_mode=False)


def test_an_unclear_or_unusable_label_is_refused_with_a_command(
    here, write_table, propose
):
    write_table(here / "d" / "part 0", 0, clicked=lambda n: n % 4, day=lambda n: n % 7)
    with pytest.raises(UsageError, match="looks like the label") as caught:
        propose("clicks", "d/part*")
    assert caught.value.hint == (
        "sluice init clicks --examples 'd/part*' --label clicked"
    )
    assert not (here / "configs").exists()
    with pytest.raises(UsageError, match="'x' cannot be the label") as caught:
        propose("clicks", "d", "--label", "x")
    _follow(caught.value.hint)
    assert valid("clicks").config.label.feature == "clicked"


def test_a_label_that_leaves_no_feature_is_not_suggested(here, propose):
    only = {"day": lambda n: n % 7}
    for name, columns in {"a": only, "b": {**only, "label": lambda n: n / 7}}.items():
        (here / name).mkdir()
        records = [
            encode({key: [column(n)] for key, column in columns.items()})
            for n in range(60)
        ]
        tfrecord.write(here / name / "part-0", records)
    with pytest.raises(UsageError, match="looks like the label") as caught:
        propose("clicks", "a")
    assert "--label" not in (caught.value.hint or "")
    with pytest.raises(UsageError, match="looks like the label") as caught:
        propose("clicks", "b")
    assert caught.value.examples == (
        "label: it is FLOAT; classes are whole numbers or strings",
    )
    _follow(caught.value.hint)
    assert valid("clicks").config.label.feature == "day"


def test_a_missing_folder_is_refused_with_close_matches(here, write_table, propose):
    for name in ("clicks", "sales", "trips"):
        for split in ("train", "eval"):
            write_table(here / "data" / name / f"{split}-0", 0)
    with pytest.raises(UsageError, match="matches no TFRecord file") as caught:
        propose("clicks", "data/nothere")
    assert caught.value.examples == ("clicks/", "sales/", "trips/")
    # All of the three have such files, and together they are no data set.
    for wrong, hint in {
        "data/train-*": None,
        "data/click": "--examples data/clicks",
        "data/clik/*-0": "--examples 'data/clicks/*-0'",
    }.items():
        with pytest.raises(UsageError, match="matches no TFRecord file") as caught:
            propose("clicks", wrong)
        if hint:
            assert hint in str(caught.value.hint)
        else:
            assert "--examples" not in (caught.value.hint or "")
