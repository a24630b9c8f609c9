"""Validates that a model fits the features, and its ``model_params``."""

from __future__ import annotations

from pydantic import ValidationError

from pipeline.config.config import BUNDLED_MODELS, Config
from pipeline.config.features import Image
from pipeline.config.model_params import ApplicationParams, CnnParams, DenseParams
from pipeline.config.problems import Problems
from sluice.config_section import Section
from sluice.errors import did_you_mean

# Height and width that models of ``tf.keras.applications`` need at least; others: 32.
SMALLEST_IMAGE = {"InceptionResNetV2": 75, "InceptionV3": 75, "Xception": 71}

_PARAMS: dict[str, type[Section]] = {
    "dense": DenseParams,
    "wide_deep": DenseParams,
    "cnn": CnnParams,
}


def check_model(config: Config, problems: Problems) -> None:
    """Adds the problems of ``model`` and ``model_params``; features are resolved."""
    if config.model not in BUNDLED_MODELS and not config.is_application:
        return
    features = config.features or {}
    images = [spec for spec in features.values() if isinstance(spec, Image)]
    if config.model == "wide_deep" and images:
        problems.add(("model",), "the model 'wide_deep' takes no images")
    if config.model == "cnn" or config.is_application:
        if len(images) != 1 or len(features) != 1:
            problems.add(
                ("model",),
                f"the model {config.model!r} takes exactly one image and no other "
                "feature: list only the image in 'features'",
                hint=did_you_mean(config.model, BUNDLED_MODELS)
                if config.is_application
                else None,
            )
        elif config.is_application:
            _check_image(config, images[0], problems)
    section = _PARAMS.get(config.model, ApplicationParams)
    try:
        section.model_validate(config.model_params)
    except ValidationError as error:
        problems.add_refused(error, config.model_params, section, ("model_params",))


def _check_image(config: Config, image: Image, problems: Problems) -> None:
    (name,) = config.features or {}
    smallest = SMALLEST_IMAGE.get(config.model, 32)
    if min(image.height, image.width) < smallest:
        problems.add(
            ("features", name),
            f"the image of {image.height} x {image.width} is too small for "
            f"{config.model}, which takes at least {smallest} x {smallest}: write a "
            "larger size, to which images are resized",
        )
    if image.channels == 4:
        problems.add(
            ("features", name, "channels"),
            f"{config.model} takes no alpha channel: 3 (RGB), or 1 (gray)",
        )
