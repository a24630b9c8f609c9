"""``sluice init``: proposed configs and schemas, and data that is refused."""

from __future__ import annotations

import json

import pytest

from pipeline.checks.check_config import validate_config
from pipeline.config.load import load_config
from runners.cli.init import command as init
from sample_data.tf_example import encode
from sluice.errors import ConfigError, DataError, UsageError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.tf


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


CONFIG = """\
# clicks: proposed by 'sluice init' from all 180 records of 3 files.
# Review it, then check it with 'sluice validate clicks'.
# 'sluice config clicks' prints all keys, with their defaults.
version: 1
name: clicks
description: Predicts clicked.
# Splits: by the names of the files.
data:
  dir: data/the clicks
  splits:
    train: train *
    eval: validation *
    test: test *
schema: schemas/clicks/schema.pbtxt
# The label: it has two values. Its classes are its domain in the schema.
label:
  feature: clicked
# The model uses only these.
features:
  # 3 values, assumed complete
  colour: {kind: vocabulary}
  # 0 to 14.2857, 101 values
  x: {kind: numeric}
# Or your own package.module:build_model.
model: wide_deep
train:
  epochs: 20
  batch_size: 32
  early_stopping:
    patience: 3
# The first limit only rules out a model that learned nothing.
evaluate:
  metrics:
    - AUC
    - {class: AUC, name: auc_pr, params: {curve: PR}}
    - BinaryAccuracy
    - ExampleCount
  thresholds:
    - {metric: auc, lower_bound: 0.55}
    - {metric: auc, change: {direction: higher_is_better, absolute: -0.01}}
"""


def test_the_screen_and_the_config(clicks, here, capsys):
    init.main(["clicks", "--examples", "data/the clicks"], standalone_mode=False)
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == [
        "looked at  all 180 records of 3 files",
        "splits     train train *, eval validation *, test test * "
        "(by the names of the files)",
        "label      clicked, classification, 2 classes (it has two values)",
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
    assert (here / "configs" / "clicks.yaml").read_text() == CONFIG
    assert sorted(p.name for p in (here / "configs").iterdir()) == ["clicks.yaml"]


def test_existing_files_are_replaced_only_with_force(clicks, here, propose):
    config = here / "configs" / "clicks.yaml"
    config.parent.mkdir()
    config.write_text("mine")
    with pytest.raises(UsageError, match="already exists") as caught:
        propose("clicks", "data/the clicks/*")
    assert caught.value.examples == (str(config),)
    assert "--force" in str(caught.value.hint)
    assert config.read_text() == "mine" and not (here / "schemas").exists()
    propose("clicks", "data/the clicks/*", "--force")
    assert valid("clicks").config.name == "clicks"


@pytest.mark.parametrize("name", ["My Clicks", "../x"])
def test_an_invalid_name_is_refused(clicks, propose, name):
    with pytest.raises(UsageError, match="is not a valid pipeline name") as caught:
        propose(name, "data/the clicks/*")
    assert "lower-case letters" in caught.value.what


def test_refused_data_leaves_no_file(clicks, here, write_table, propose):
    file = clicks / "train of today.tfrecord.gz"
    tfrecord.write(file, [encode({"x": [1.0]}), b"{json: 1}"])
    with pytest.raises(DataError, match="not a tf.Example") as caught:
        propose("clicks", "data/the clicks/*")
    assert caught.value.where == f"{file}, record 2"
    assert not (here / "configs").exists()


def test_records_without_a_usable_feature(here, write_table, propose):
    """What is known is written, and what is to be filled in is said."""
    write_table(here / "d" / "part-0", 0, x=lambda n: 0.5, colour=lambda n: b"red")
    facts = propose("clicks", "d")
    assert not any(choice["spec"] for choice in facts["features"])
    assert "fill in 'features'" in facts["warnings"][-1]
    with pytest.raises(ConfigError, match="at least one"):
        load_config("clicks")
