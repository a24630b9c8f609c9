"""Errors of a config: key path, and the file and line or ``--set`` of each."""

from __future__ import annotations

import json
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from sluice.config_section import Section
from sluice.errors import ConfigError, SluiceError, bounded, did_you_mean

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

    def add(
        self,
        path: KeyPath,
        what: str,
        *,
        expected: str | None = None,
        actual: str | None = None,
        hint: str | None = None,
    ) -> None:
        """Adds a problem with the key at ``path``; see ``SluiceError``."""
        location, key = self._origin.location(path), key_path(path)
        # A --set shows its key path itself.
        shown = location.startswith(f"--set {key}=")
        where = location if shown else f"{location}, {key}"
        self._found.append(
            ConfigError(what, where=where, expected=expected, actual=actual, hint=hint)
        )

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

    def unknown_feature(self, path: KeyPath, name: str, known: Iterable[str]) -> None:
        """Adds a feature that is not in the schema."""
        self.unknown(path, f"the schema has no feature {name!r}", name, known)

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
        self,
        error: ValidationError,
        data: Any,
        section: type[Section],
        below: KeyPath = (),
    ) -> None:
        """Adds what pydantic refuses in the data of a section ``below`` a key path."""
        for details in error.errors(include_url=False):
            path = (*below, *_path_in(data, details["loc"]))
            match details["type"]:
                case "extra_forbidden":
                    known = _known_keys(section, details["loc"])
                    self.unknown(path, f"unknown key {path[-1]!r}", path[-1], known)
                case "missing":
                    key = details["loc"][-1]
                    self.add((*path, key), f"the key {key!r} is missing")
                case "refused":
                    self.add((*path, *details["ctx"]["key"]), details["msg"])
                case "value_error":
                    self.add(path, str(details["ctx"]["error"]))
                case _:
                    given = json.dumps(details["input"], default=str)
                    short = given if len(given) <= 60 else f"{given[:57]}..."
                    self.add(path, details["msg"], actual=short)


def key_path(path: KeyPath) -> str:
    """Returns ``evaluate.thresholds[0].metric`` for its parts."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return "".join(parts).removeprefix(".")


def _one_line(problem: ConfigError) -> str:
    parts = [f"{problem.where}: {problem.what}"]
    parts += [f"expected {problem.expected}"] if problem.expected else []
    parts += [f"found {problem.actual}"] if problem.actual else []
    parts += [problem.hint] if problem.hint else []
    return "; ".join(part.removesuffix(".") for part in parts)


def _path_in(data: Any, loc: Sequence[str | int]) -> KeyPath:
    """Returns a place in data, without the tags of unions in pydantic's ``loc``."""
    path: list[str | int] = []
    for part in loc:
        if part in data if isinstance(data, dict) else isinstance(part, int):
            path.append(part)
            data = data[part]
    return tuple(path)


def _known_keys(section: type[Section], loc: Sequence[str | int]) -> list[str]:
    """Returns the keys of the section in which pydantic refuses an unknown one."""
    sections = [section]
    for part in loc[:-1]:
        tagged = [item for item in sections if _tag_of(item) == part]
        inner = [
            below
            for item in sections
            for name, info in item.model_fields.items()
            if part == (info.alias or name)
            for below in _sections_in(info.annotation)
        ]
        # An index, or the key of a mapping, leads to the same sections.
        sections = tagged or inner or sections
    return [info.alias or name for name, info in sections[0].model_fields.items()]


def _sections_in(kind: Any) -> list[type[Section]]:
    """Returns the sections that an annotation names, such as ``tuple[Metric, ...]``."""
    if arguments := typing.get_args(kind):
        return [item for argument in arguments for item in _sections_in(argument)]
    return [kind] if isinstance(kind, type) and issubclass(kind, Section) else []


def _tag_of(section: type[Section]) -> object:
    """Returns the ``kind`` of a section in a union."""
    kind = section.model_fields.get("kind")
    return kind and typing.get_args(kind.annotation)[0]
