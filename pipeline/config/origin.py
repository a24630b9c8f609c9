"""Key paths of a config, and the file and line or ``--set`` of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

KeyPath = tuple[str | int, ...]


def key_path(path: KeyPath) -> str:
    """Returns ``evaluate.thresholds[0].metric`` for its parts."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


@dataclass(frozen=True)
class Origin:
    """The sources of a config, so that errors can name file and line.

    Attributes:
      root: the project root, absolute.
      file: path of the base config, for messages; ``profile`` likewise, or None.
      overrides: the ``--set`` values in order, as given.
      locations: ``file:line``, or the ``--set``, of each key path.
    """

    root: Path
    file: str
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    locations: dict[KeyPath, str] = field(default_factory=dict)

    def location(self, path: KeyPath) -> str:
        """Returns the location of a key, or of the nearest mapping or list above it."""
        while path and path not in self.locations:
            path = path[:-1]
        return self.locations.get(path, self.file)
