"""Errors of a config: key path, and the file and line or ``--set`` of each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sluice.errors import ConfigError, SluiceError, bounded, did_you_mean
from sluice.secrets import redact

_MAX_LISTED = 30

KeyPath = tuple[str | int, ...]


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


class Problems:
    """Collects problems and warnings about a config."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._found: list[ConfigError] = []
        self.warnings: list[str] = []

    def add(self, path: KeyPath, what: str, **more: Any) -> ConfigError:
        """Adds a problem with the key at ``path``; ``more`` are fields of its error."""
        location, key = self._origin.location(path), key_path(path)
        # A --set shows its key path itself.
        names_key = location.startswith(f"--set {key}=")
        where = location if names_key else f"{location}, {key}"
        problem = ConfigError(redact(what), where=where, **more)
        self._found.append(problem)
        return problem

    def add_error(self, path: KeyPath, error: SluiceError) -> None:
        """Adds an error about the value at ``path``."""
        parts = {"expected": error.expected, "actual": error.actual, "hint": error.hint}
        self.add(path, error.what, **parts)

    def unknown(
        self, path: KeyPath, what: str, name: object, known: Iterable[str]
    ) -> None:
        """Adds an unknown name, and suggests the nearest known one."""
        known = list(known)
        expected = "one of " + ", ".join(bounded(known, _MAX_LISTED)) if known else None
        self.add(path, what, expected=expected, hint=did_you_mean(name, known))

    def warn(self, path: KeyPath, what: str) -> None:
        """Adds a warning: valid, but probably not intended."""
        self.warnings.append(f"{self._origin.location(path)}, {key_path(path)}: {what}")

    def raise_if_any(self) -> None:
        """Raises one ``ConfigError`` for all problems, if there are any."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            raise ConfigError(
                f"the config has {len(self._found)} problems",
                examples=[_one_line(problem) for problem in self._found],
            )

    def add_refused(
        self, error: ValidationError, data: Any, below: KeyPath = ()
    ) -> None:
        """Adds what pydantic refuses in the data of a section ``below`` a key path."""
        for details in error.errors(include_url=False):
            path = (*below, *_path_in(data, details["loc"]))
            match details["type"]:
                case "missing":
                    key = details["loc"][-1]
                    self.add((*path, key), f"the key {key!r} is missing")
                case "refused":
                    self.add((*path, *details["ctx"]["key"]), details["msg"])
                case _:
                    self.add(path, details["msg"], actual=shown(details["input"]))


def shown(value: Any) -> str:
    """Returns a value as JSON, cut at 60 characters."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def key_path(path: KeyPath) -> str:
    """Returns ``evaluate.thresholds[0].metric`` for its parts."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _one_line(problem: ConfigError) -> str:
    more = {"expected ": problem.expected, "found ": problem.actual, "": problem.hint}
    parts = [f"{word}{text}" for word, text in more.items() if text]
    return "; ".join([f"{problem.where}: {problem.what}", *parts])


def _path_in(data: Any, loc: Sequence[str | int]) -> KeyPath:
    """Returns a place in data, without the tags of unions in pydantic's ``loc``."""
    path: list[str | int] = []
    for part in loc:
        if part in data if isinstance(data, dict) else isinstance(part, int):
            path.append(part)
            data = data[part]
    return tuple(path)
