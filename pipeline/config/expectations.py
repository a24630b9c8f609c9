"""What a config requires of the features beyond their schema."""

from __future__ import annotations

from pipeline.config.config import Config
from schemas.diff.diff_schema import Expectations


def expectations(config: Config) -> Expectations:
    """Returns what a config says of the features beyond their schema."""
    required = {
        name: "it is an image, which has no stand-in"
        for name, spec in (config.features or {}).items()
        if spec.kind == "image"
    }
    required[config.label.feature] = "it is the label"
    return Expectations(config.sensitive, required)
