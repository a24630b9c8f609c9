"""Config sections ``features`` and ``label``: model inputs and target.

Transformed features carry the suffix ``_xf``, as in TFX's examples, because TFMA sees
raw and transformed features side by side.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field

from sluice.config_section import Channels, ClassList, Count, Pixels, Section, Text

# The name after preprocessing of the feature with the weights of examples.
SAMPLE_WEIGHT_KEY = "sample_weight"


def transformed_name(name: str) -> str:
    """Returns the name that a raw feature has after preprocessing."""
    return f"{name}_xf"


def identifier(name: str) -> str:
    """Returns a name that is valid in signatures, layers and file names.

    TensorFlow turns ``image/encoded`` into ``image_encoded`` in some places and refuses
    it in others.
    """
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return plain if plain[:1].isalpha() and plain != "self" else f"feature_{plain}"


class Label(Section):
    """What is predicted."""

    feature: Text
    """The label's name in the schema."""
    classes: ClassList = None
    """The label's values in the order of the model's outputs; of two, the second is the
    positive one. null: the values of its domain in the schema."""

    @property
    def key(self) -> str:
        """The name after preprocessing; its values are class ids, -1 for none."""
        return transformed_name(self.feature)

    @property
    def class_names(self) -> list[str]:
        """The classes as text, in the order of their ids."""
        return [str(value) for value in self.classes or ()]


class _Kind(Section):
    kind: str
    """What the feature is turned into."""


class Numeric(_Kind):
    """A number, as a z-score."""

    kind: Literal["numeric"] = "numeric"
    """What the feature is turned into."""


class Bucketized(_Kind):
    """A number, as the one of `buckets` quantiles that it falls into."""

    kind: Literal["bucketized"] = "bucketized"
    """What the feature is turned into."""
    buckets: Annotated[int, Field(strict=True, ge=2, le=10_000)] = 10
    """Number of quantile buckets."""


class Vocabulary(_Kind):
    """A string or a whole number, as its place among those seen in training."""

    kind: Literal["vocabulary"] = "vocabulary"
    """What the feature is turned into."""
    top_k: Count | None = None
    """Number of most frequent values to keep. null: all."""
    oov_buckets: Count = 1
    """Number of hash buckets for all other values."""


class Hashed(_Kind):
    """A string or a whole number, as a hash; nothing is learned from the data."""

    kind: Literal["hashed"] = "hashed"
    """What the feature is turned into."""
    buckets: Annotated[int, Field(strict=True, ge=2)] = 64
    """Number of hash buckets."""


class Image(_Kind):
    """An encoded image (PNG, JPEG), decoded and resized."""

    kind: Literal["image"] = "image"
    """What the feature is turned into."""
    height: Pixels
    """Height after resizing, in pixels."""
    width: Pixels
    """Width after resizing, in pixels."""
    channels: Channels
    """1 for gray, 3 for RGB, 4 for RGBA."""


FeatureSpec = Annotated[
    Numeric | Bucketized | Vocabulary | Hashed | Image, Field(discriminator="kind")
]


class FeatureSet(Section):
    """Features and label as the nodes take them, filled in from the schema.

    Other changes of the config thus do not rerun Transform and Trainer.
    """

    features: dict[str, FeatureSpec]
    """By raw name, in the order of the config."""
    label: Label
    """With its classes."""
    sample_weight: Text | None = None
    """The raw feature with the weight of each example in training; after preprocessing
    it is ``SAMPLE_WEIGHT_KEY``, as it was. null: all are 1."""

    @property
    def images(self) -> dict[str, Image]:
        """The image features by transformed name."""
        return {
            transformed_name(name): spec
            for name, spec in self.features.items()
            if isinstance(spec, Image)
        }
