"""What a config says on which data the record may show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Privacy:
    """What of the data may be shown, and which features are label, weight and images.

    Attributes:
      private: whether no record may be shown.
      sensitive: features of which only counts are shown.
      label: the feature with the class; None if unknown.
      weight: the feature with the weights of the examples; None if they have none.
      images: encoded images among the features, with their keys in the config.
    """

    private: bool = False
    sensitive: list[str] = field(default_factory=list)
    label: str | None = None
    weight: str | None = None
    images: dict[str, Any] = field(default_factory=dict)
