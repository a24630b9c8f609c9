"""The file of pretrained weights: found, content-addressed, in the digests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline.config.config import Config
from pipeline.config.load import load_config
from pipeline.config.resolve_features import feature_set_of
from pipeline.config.validate import validate_config
from pipeline.graph.arguments import GraphContext, of_trainer
from pipeline.graph.custom_nodes import files_of
from pipeline.graph.locations import Locations
from pipeline.graph.validate_graph import validate_pipeline
from sluice.errors import ConfigError

pytestmark = pytest.mark.tf


def _config(project: Path, weights: str = "files/vgg16.h5") -> Config:
    image = "{kind: image, height: 32, width: 32, channels: 1}"
    overrides = [
        "model=VGG16",
        f"model_params={{weights: {weights}}}",
        f"features={{image: {image}}}",
    ]
    return load_config("digits", overrides=overrides, cwd=project)


def _model_params(project: Path, tmp_path: Path) -> dict[str, Any]:
    valid = validate_config(_config(project))
    inputs = Locations("root", tmp_path / "db", tmp_path / "in", "serving", "accepted")
    features = feature_set_of(valid.config, valid.schema)
    arguments = of_trainer(GraphContext(valid.config, inputs, features))
    return arguments["custom_config"]["model_params"]


def test_the_trainer_gets_a_path_that_contains_the_digest(project, tmp_path):
    file = project / "files" / "vgg16.h5"
    file.parent.mkdir()
    file.write_bytes(b"one")
    before = Path(_model_params(project, tmp_path)["weights"])
    assert before.is_absolute(), "a node may run in another directory"
    assert (before.name, before.read_bytes()) == ("vgg16.h5", b"one")
    assert Path(_model_params(project, tmp_path)["weights"]) == before
    file.write_bytes(b"two")
    assert Path(_model_params(project, tmp_path)["weights"]) != before
    assert files_of(_config(project)) == [file], "a run is not up to date after an edit"


@pytest.mark.parametrize("given", ["imagenet", "weights/missing.h5"])
def test_a_missing_file_names_what_to_download(project, given):
    from tf_keras.src.applications import vgg16

    with pytest.raises(ConfigError) as caught:
        validate_pipeline(_config(project, given))
    message = str(caught.value)
    assert f"there is no file of weights '{given}'" in message
    name = vgg16.WEIGHTS_PATH_NO_TOP.rpartition("/")[2]
    assert f"download {vgg16.WEIGHTS_PATH_NO_TOP} (MD5 " in message
    assert f"to {project / 'weights'} and write weights: weights/{name}" in message

    with pytest.raises(ConfigError) as caught:
        validate_pipeline(_config(project, f"mine/{name}"))
    assert caught.value.expected == str(project / "mine" / name)
    assert str(caught.value.hint).endswith(f" to {project / 'mine'}")
