"""Validates that a model fits the features, and its ``model_params``."""

from __future__ import annotations

from pydantic import ValidationError

from pipeline.config.applications import APPLICATIONS, ApplicationParams
from pipeline.config.config import Config
from pipeline.config.features import Image
from pipeline.config.problems import Problems


def check_model(config: Config, problems: Problems) -> None:
    """Adds the problems of ``model`` and ``model_params``; features are resolved."""
    features = config.features or {}
    images = [spec for spec in features.values() if isinstance(spec, Image)]
    if config.model == "cnn" or config.model in APPLICATIONS:
        if len(images) != 1 or len(features) != 1:
            problems.add(
                ("model",),
                f"the model {config.model!r} takes exactly one image and no other "
                "feature",
                expected="'features' with one feature, of the kind image",
                actual=f"{len(images)} image(s) and {len(features) - len(images)} "
                "other(s)",
                hint="list only the image in 'features', or use wide_deep or dense "
                "for tabular data",
            )
        elif config.model in APPLICATIONS:
            _check_image(config, images[0], problems)
    if config.model in APPLICATIONS:
        _check_params(config, problems)
    if config.model == "wide_deep" and images:
        name = next(name for name, spec in features.items() if spec.kind == "image")
        problems.add(
            ("model",),
            f"the model {config.model!r} takes no images",
            expected="numeric, bucketized, vocabulary and hashed features",
            actual=f"the image {name!r}",
            hint="use cnn or dense, or your own package.module:build_model",
        )


def _check_image(config: Config, image: Image, problems: Problems) -> None:
    (name,) = config.features or {}
    smallest = APPLICATIONS[config.model]
    if min(image.height, image.width) < smallest:
        problems.add(
            ("features", name),
            f"the image is too small for {config.model}",
            expected=f"height and width of at least {smallest}",
            actual=f"{image.height} x {image.width}",
            hint="write a larger size: images are resized to it",
        )
    if image.channels == 4:
        problems.add(
            ("features", name, "channels"),
            f"{config.model} takes no alpha channel",
            expected="3 (RGB), or 1 (gray, repeated three times)",
            actual="4 (RGBA)",
        )


def _check_params(config: Config, problems: Problems) -> None:
    try:
        ApplicationParams.model_validate(config.model_params)
    except ValidationError as error:
        given = config.model_params
        problems.add_refused(error, given, ApplicationParams, ("model_params",))
