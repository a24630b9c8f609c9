"""The section ``cloud``: inheritance of ``default``, checks of single values."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pipeline.config.cloud import Cloud
from pipeline.config.load import load_config
from sluice.errors import ConfigError

pytestmark = pytest.mark.unit


def test_a_nodes_own_keys_replace_those_of_default():
    cloud = Cloud.model_validate(
        {
            "env": {"A": "1", "B": "1"},
            "nodes": {
                "default": {"cpu": 4, "retries": 2, "env": {"B": "2"}},
                "Trainer": {"cpu": 16, "retries": 0, "env": {"C": "3"}},
            },
        }
    )
    trainer, other = cloud.of_node("Trainer"), cloud.of_node("Transform")
    assert (trainer.cpu, trainer.retries) == (16, 0)
    assert trainer.env == {"A": "1", "B": "2", "C": "3"}
    assert (other.cpu, other.retries, other.env) == (4, 2, {"A": "1", "B": "2"})


@pytest.mark.parametrize(
    ("document", "wanted"),
    [
        ({"root": "/data"}, "a place in a bucket, such as gs://my-bucket/sluice"),
        ({"region": "a/b"}, "such as europe-west4"),
    ],
)
def test_wrong_values(document, wanted):
    with pytest.raises(ValidationError, match=wanted):
        Cloud.model_validate(document)


def test_the_folder_of_a_pipeline_is_below_the_root():
    config = load_config("digits", overrides=["cloud.root=gs://bucket/root/"])
    assert config.cloud_dir == "gs://bucket/root/digits"
    for overrides in ([], ["cloud.engine=vertex"]):
        with pytest.raises(ConfigError, match=r"cloud\.root is not set"):
            _ = load_config("digits", overrides=overrides).cloud_dir
