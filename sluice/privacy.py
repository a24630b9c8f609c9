"""What a config says on which data the record may show."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Privacy:
    """What of the data may be shown, and which feature is the label.

    Attributes:
      private: whether no record may be shown.
      sensitive: features of which only counts are shown.
      label: the feature with the class; None if unknown.
    """

    private: bool = False
    sensitive: list[str] = field(default_factory=list)
    label: str | None = None
