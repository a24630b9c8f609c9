"""A model of tf.keras.applications in a config: names, images and parameters."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit


def image(height: int = 32, width: int = 32, channels: int = 3) -> str:
    size = f"height: {height}, width: {width}, channels: {channels}"
    return f"features={{photo: {{kind: image, {size}}}}}"


APPLICATION = ("model=VGG16", "features=null", image())


def test_the_path_of_an_application(validate, project):
    config = validate(*APPLICATION, "model_params={weights: files/w.h5}").config
    assert config.model_path == "pipeline.training.models.application:VGG16"
    assert config.weights_file == project / "files" / "w.h5"
    assert validate(*APPLICATION).config.weights_file is None
    own = validate("model_params={weights: files/w.h5}").config
    assert own.weights_file is None, "a parameter of another model"


def test_a_wrong_name_suggests_an_application(refused):
    message = refused("model=VGG-16")
    assert "a model of tf.keras.applications" in message
    assert "did you mean 'VGG16'?" in message


def test_an_application_takes_one_large_enough_image(validate, refused):
    assert "takes exactly one image" in refused("model=VGG16")
    validate(*APPLICATION[:2], image(channels=1))
    message = refused(*APPLICATION[:2], image(height=31))
    assert "the image is too small for VGG16" in message
    assert "height and width of at least 32" in message
    assert "31 x 32" in message
    assert "at least 75" in refused("model=InceptionV3", *APPLICATION[1:])
    assert "no alpha channel" in refused(*APPLICATION[:2], image(channels=4))


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ("{wights: a.h5}", "did you mean 'weights'?"),
        ("{weights: 3}", "a string"),
        ("{pooling: mean}", "'avg' or 'max'"),
        ("{head: 3}", "a list"),
        ("{head: [0]}", "at least 1"),
        ("{dropout: 1}", "less than 1"),
    ],
)
def test_parameters_of_an_application(refused, params, found):
    message = refused(*APPLICATION, f"model_params={params}")
    assert found in message
    assert "model_params" in message
