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
    """Where a config came from, so that a late error still names file and line.

    Attributes:
      root: the project root, absolute.
      file: the base config, as it is shown to the user.
      profile: the overlay's file, as it is shown, or None.
      overrides: the ``--set`` values in order, as given.
      locations: for each key path, the file and line, or the ``--set``, that set it.
    """

    root: Path
    file: str
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    locations: dict[KeyPath, str] = field(default_factory=dict)

    def location(self, path: KeyPath) -> str:
        """Returns what set a key, or else the nearest mapping or list above it."""
        while path and path not in self.locations:
            path = path[:-1]
        return self.locations.get(path, self.file)
