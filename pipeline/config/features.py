"""Config sections ``features`` and ``label``: model inputs and target."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from sluice.config_section import Channels, ClassList, Count, Pixels, Section, Text


class Label(Section):
    """What is predicted."""

    feature: Text = Field(description="The label's name in the schema.")
    classes: ClassList = Field(
        default=None,
        description="The label's values in the order of the model's outputs; of two, "
        "the second is the positive one. null: the values of its domain in the schema.",
    )


_KIND = "What the feature is turned into."


class Numeric(Section):
    """A number, as a z-score."""

    kind: Literal["numeric"] = Field(default="numeric", description=_KIND)


class Bucketized(Section):
    """A number, as the one of `buckets` quantiles that it falls into."""

    kind: Literal["bucketized"] = Field(default="bucketized", description=_KIND)
    buckets: Annotated[int, Field(strict=True, ge=2, le=10_000)] = Field(
        default=10, description="Number of quantile buckets."
    )


class Vocabulary(Section):
    """A string or a whole number, as its place among those seen in training."""

    kind: Literal["vocabulary"] = Field(default="vocabulary", description=_KIND)
    top_k: Count | None = Field(
        default=None, description="Number of most frequent values to keep. null: all."
    )
    oov_buckets: Count = Field(
        default=1, description="Number of hash buckets for all other values."
    )


class Hashed(Section):
    """A string or a whole number, as a hash; nothing is learned from the data."""

    kind: Literal["hashed"] = Field(default="hashed", description=_KIND)
    buckets: Annotated[int, Field(strict=True, ge=2)] = Field(
        default=64, description="Number of hash buckets."
    )


class Image(Section):
    """An encoded image (PNG, JPEG), decoded and resized."""

    kind: Literal["image"] = Field(default="image", description=_KIND)
    height: Pixels = Field(description="Height after resizing, in pixels.")
    width: Pixels = Field(description="Width after resizing, in pixels.")
    channels: Channels = Field(description="1 for gray, 3 for RGB, 4 for RGBA.")


FeatureSpec = Annotated[
    Numeric | Bucketized | Vocabulary | Hashed | Image, Field(discriminator="kind")
]
FEATURE_KINDS = ("numeric", "bucketized", "vocabulary", "hashed", "image")
