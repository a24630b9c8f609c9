"""Features and label as nodes use them, without the rest of the config.

It is passed as JSON in ``custom_config``, so that other changes of the config do not
rerun Transform and Trainer. Transformed features carry the suffix ``_xf``, as in
TFX's examples, because TFMA sees raw and transformed features side by side.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

# The name after preprocessing of the feature with the weights of examples.
SAMPLE_WEIGHT_KEY = "sample_weight"

Kind = Literal["numeric", "bucketized", "vocabulary", "hashed", "image"]


@dataclass(frozen=True)
class Feature:
    """One raw feature and how it is transformed.

    Attributes:
      kind: numeric (z-score), bucketized (quantiles), vocabulary, hashed, image.
      options: of the kind: ``buckets``, ``top_k``, ``oov_buckets``, or ``height``,
        ``width`` and ``channels`` in pixels.
    """

    name: str
    kind: Kind
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """The name after preprocessing."""
        return transformed_name(self.name)

    @property
    def vocabulary_name(self) -> str:
        """The file name of its vocabulary."""
        return identifier(self.key)


@dataclass(frozen=True)
class Label:
    """The label feature and its classes, in the order of their ids."""

    name: str
    classes: tuple[int, ...] | tuple[str, ...]

    @property
    def key(self) -> str:
        """The name after preprocessing; its values are class ids, -1 for none."""
        return transformed_name(self.name)

    @property
    def class_names(self) -> list[str]:
        return [str(value) for value in self.classes]


@dataclass(frozen=True)
class FeatureSet:
    """The features, in the order of the config, and the label.

    Attributes:
      sample_weight: the raw feature with the weight of each example in training; None:
        all are 1. After preprocessing it is ``SAMPLE_WEIGHT_KEY``, as it was.
    """

    features: tuple[Feature, ...]
    label: Label
    sample_weight: str | None = None

    @property
    def images(self) -> dict[str, Feature]:
        """The image features by transformed name."""
        return {item.key: item for item in self.features if item.kind == "image"}

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> FeatureSet:
        """Reads what ``to_dict`` wrote."""
        label = data["label"]
        return cls(
            features=tuple(Feature(**item) for item in data["features"]),
            label=Label(label["name"], tuple(label["classes"])),
            sample_weight=data["sample_weight"],
        )


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
