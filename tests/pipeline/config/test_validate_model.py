"""Models without code of the user: what they are given, and their parameters."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.unit


def image(height=32, width=32, channels=3):
    size = f"height: {height}, width: {width}, channels: {channels}"
    return f"features={{photo: {{kind: image, {size}}}}}"


APPLICATION = ("model=VGG16", "features=null", image())
CNN = ("model=cnn", "features=null", image())


def test_the_path_of_an_application(validate, project):
    config = validate(*APPLICATION, "model_params={weights: files/w.h5}").config
    assert config.model_path == "pipeline.training.models.application:VGG16"
    assert config.weights_file == project / "files" / "w.h5"
    assert validate(*APPLICATION).config.weights_file is None


def test_an_application_takes_one_image(validate, refused):
    assert "takes exactly one image" in refused("model=VGG16")
    assert "did you mean 'wide_deep'?" in refused("model=wide_dep")
    validate(*APPLICATION[:2], image(channels=1))


@pytest.mark.parametrize(
    ("model", "params", "found"),
    [
        (APPLICATION, "{wights: a.h5}", "did you mean 'weights'?"),
        # They trained with the defaults, or failed in the Trainer.
        (("model=dense",), "{dropuot: 0.9}", "did you mean 'dropout'?"),
        (CNN, "{filters: abc}", "valid tuple"),
    ],
)
def test_wrong_parameters_are_refused(refused, model, params, found):
    message = refused(*model, f"model_params={params}")
    assert found in message
    assert "model_params" in message


def test_right_parameters(validate):
    validate("model_params={hidden_units: [8], dropout: 0}")
    validate(*CNN, "model_params={filters: [8, 16], dense_units: 4}")
