"""What is wrong with a config, told on one screen: file, key path, expected, found.

``load_config`` (one value at a time) and ``validate_config`` (values against each
other) both speak through this, so every config error reads alike.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.config.config import Config
from pipeline.config.features import FEATURE_KINDS
from pipeline.config.layers import Layer
from pipeline.config.origin import KeyPath, Origin, key_path
from pipeline.config.yaml_reader import describe
from sluice.errors import ConfigError, bounded, did_you_mean


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a config.

    Attributes:
      place: ``file:line``, or the ``--set``, that the key came from.
      path: the key path.
      what: one sentence.
      expected: what would have been right.
      actual: what was found instead.
      hint: the way out.
    """

    place: str
    path: KeyPath
    what: str
    expected: str | None = None
    actual: str | None = None
    hint: str | None = None

    @property
    def where(self) -> str:
        key = key_path(self.path)
        # A --set shows its key path itself.
        shown = not key or self.place.startswith(f"--set {key}=")
        return self.place if shown else f"{self.place}, {key}"


class Problems:
    """Collects problems and warnings about a config that has been loaded."""

    def __init__(self, origin: Origin) -> None:
        self._origin = origin
        self._found: list[Problem] = []
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
        """Notes a problem with the key at ``path``."""
        place = self._origin.place(path)
        self._found.append(Problem(place, path, what, expected, actual, hint))

    def unknown_feature(self, path: KeyPath, name: str, known: Iterable[str]) -> None:
        """Notes that a feature is not in the schema."""
        known = list(known)
        self.add(
            path,
            f"The schema has no feature {name!r}.",
            expected="one of " + ", ".join(bounded(known, 20)),
            hint=did_you_mean(name, known),
        )

    def warn(self, path: KeyPath, what: str) -> None:
        """Notes what is allowed but probably not meant."""
        self.warnings.append(f"{self._origin.place(path)}, {key_path(path)}: {what}")

    def raise_if_any(self) -> None:
        """Raises one ``ConfigError`` for all problems noted, if there are any."""
        if self._found:
            raise config_error(self._found)


def config_error(problems: Sequence[Problem]) -> ConfigError:
    """Returns one error for all problems; only the first five are printed."""
    if len(problems) == 1:
        only = problems[0]
        return ConfigError(
            only.what,
            where=only.where,
            expected=only.expected,
            actual=only.actual,
            hint=only.hint,
        )
    return ConfigError(
        f"The config has {len(problems)} problems.",
        examples=[_one_line(problem) for problem in problems],
    )


def from_pydantic(error: ValidationError, layer: Layer, default: str) -> list[Problem]:
    """Returns what pydantic found, in the words of the person who wrote the YAML.

    Args:
      error: of validating ``layer.data`` as a ``Config``.
      layer: the merged layers, which know where each key stands.
      default: the base config's name, for keys that stand nowhere.
    """
    problems = []
    for details in error.errors(include_url=False):
        path = _path_in(layer.data, details)
        above = path
        while above and above not in layer.places:
            above = above[:-1]
        place = layer.places.get(above, default)
        problems.append(_problem(details, place, path))
    return problems


def _one_line(problem: Problem) -> str:
    parts = [f"{problem.where}: {problem.what}"]
    parts += [f"expected {problem.expected}"] if problem.expected else []
    parts += [f"found {problem.actual}"] if problem.actual else []
    parts += [problem.hint] if problem.hint else []
    return "; ".join(part.removesuffix(".") for part in parts)


def _problem(details: ErrorDetails, place: str, path: KeyPath) -> Problem:
    match details["type"]:
        case "missing":
            return Problem(place, path, f"The key {path[-1]!r} is missing.")
        case "extra_forbidden":
            known = _known_keys(details["loc"])
            return Problem(
                place,
                path,
                f"Unknown key {path[-1]!r}.",
                expected="one of " + ", ".join(known),
                hint=did_you_mean(path[-1], known),
            )
        case "union_tag_invalid" | "union_tag_not_found":
            found = details["ctx"].get("tag")
            return Problem(
                place,
                (*path, "kind"),
                f"Unknown kind {found!r}."
                if found
                else "The feature's kind is missing.",
                expected="one of " + ", ".join(FEATURE_KINDS),
                hint=did_you_mean(found, FEATURE_KINDS) if found else None,
            )
        case "model_type" | "model_attributes_type" | "dict_type":
            expected = "a mapping (key: value)"
        case "tuple_type":
            expected = "a list"
        case "literal_error":
            expected = details["ctx"]["expected"]
        case _:
            expected = details["msg"].removeprefix("Input should be ")
    return Problem(
        place,
        path,
        f"{key_path(path)} is not right.",
        expected=expected,
        actual=describe(details["input"]),
    )


def _path_in(data: Any, details: ErrorDetails) -> KeyPath:
    """Drops what pydantic adds to a location: the tags of unions."""
    path: list[str | int] = []
    loc = details["loc"]
    for index, part in enumerate(loc):
        inside = part in data if isinstance(data, dict) else isinstance(part, int)
        if inside:
            path.append(part)
            data = data[part]
        elif index == len(loc) - 1 and details["type"] == "missing":
            path.append(part)
    return tuple(path)


def _known_keys(loc: Sequence[str | int]) -> list[str]:
    """Returns the keys of the section that an unknown key was found in."""
    kind: Any = Config
    for part in loc[:-1]:
        kind = _step(_members(kind), part)
    section = _members(kind)[0]
    return [info.alias or name for name, info in section.model_fields.items()]


def _members(kind: Any) -> list[Any]:
    """Returns the types that an annotation allows, None left out."""
    if typing.get_origin(kind) is typing.Annotated:
        return _members(typing.get_args(kind)[0])
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return [m for arg in typing.get_args(kind) for m in _members(arg)]
    return [] if kind is type(None) else [kind]


def _step(members: Sequence[Any], part: str | int) -> Any:
    """Returns the type that a part of pydantic's location leads to."""
    for member in members:
        tag = getattr(member, "model_fields", {}).get("kind")
        if tag is not None and tag.default == part:
            return member
    kind = members[0]
    arguments = typing.get_args(kind)
    if typing.get_origin(kind) is dict:
        return arguments[1]
    if typing.get_origin(kind) is tuple:
        return arguments[0]
    return next(
        info.annotation
        for name, info in kind.model_fields.items()
        if part == (info.alias or name)
    )
