"""Collects and formats config errors: file, key path, expected and actual value."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.config.config import Config
from pipeline.config.features import FEATURE_KINDS
from pipeline.config.origin import KeyPath, Origin, key_path
from pipeline.config.yaml_values import (
    BOOLEAN,
    DECIMAL_NUMBER,
    LIST,
    MAPPING,
    STRING,
    WHOLE_NUMBER,
    describe,
    one_of,
    type_hint,
)
from sluice.config_section import Section
from sluice.errors import ConfigError, SluiceError, bounded, did_you_mean

_MAX_LISTED = 30
# pydantic's words for bounds.
_BOUNDS = {"greater than or equal to": "at least", "less than or equal to": "at most"}
# The types that a value should have, by the type of pydantic's error.
_TYPES = {
    "bool_type": (BOOLEAN,),
    "int_type": (WHOLE_NUMBER,),
    "float_type": (WHOLE_NUMBER, DECIMAL_NUMBER),
    "string_type": (STRING,),
    "tuple_type": (LIST,),
    "dict_type": (MAPPING,),
    "model_type": (MAPPING,),
    "model_attributes_type": (MAPPING,),
}


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
        shown = not key or location.startswith(f"--set {key}=")
        where = location if shown else f"{location}, {key}"
        self._found.append(
            ConfigError(what, where=where, expected=expected, actual=actual, hint=hint)
        )

    def add_error(self, path: KeyPath, error: SluiceError) -> None:
        """Adds an error about the value at ``path``."""
        self.add(
            path,
            error.what,
            expected=error.expected,
            actual=error.actual,
            hint=error.hint,
        )

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
        data: dict[str, Any],
        section: type[Section] = Config,
        below: KeyPath = (),
    ) -> None:
        """Adds the errors of pydantic about ``data``, in terms of the YAML.

        The data is of the whole config, or of a section ``below`` a key path in it.
        """
        for details in error.errors(include_url=False):
            self._add_refused(details, (*below, *_path_in(data, details)), section)

    def _add_refused(
        self, details: ErrorDetails, path: KeyPath, section: type[Section]
    ) -> None:
        types: tuple[str, ...] = ()
        hint: str | None = None
        match details["type"]:
            case "missing":
                self.add(path, f"the key {path[-1]!r} is missing")
                return
            case "extra_forbidden":
                known = _known_keys(section, details["loc"])
                self.unknown(path, f"unknown key {path[-1]!r}", path[-1], known)
                return
            case "union_tag_invalid" | "union_tag_not_found":
                kind = details["ctx"].get("tag")
                kinds = re.findall("'([^']+)'", details["ctx"].get("expected_tags", ""))
                self.unknown(
                    (*path, "kind"),
                    f"unknown kind {kind!r}"
                    if kind
                    else "the feature's kind is missing",
                    kind or "",
                    [name for name in kinds if name != "number"] or FEATURE_KINDS,
                )
                return
            case "refused":
                self.add((*path, *details["ctx"]["key"]), details["msg"])
                return
            case "value_error":
                self.add(path, str(details["ctx"]["error"]))
                return
            case kind if kind in _TYPES:
                types = _TYPES[kind]
                expected = one_of(types)
            case "literal_error":
                expected = details["ctx"]["expected"]
                names = re.findall("'([^']+)'", expected)
                hint = did_you_mean(details["input"], names)
            case _:
                expected = details["msg"].removeprefix("Input should be ")
                for words, plain in _BOUNDS.items():
                    expected = expected.replace(words, plain)
        what = "key" if details["loc"][-1] == "[key]" else "value for"
        self.add(
            path,
            f"invalid {what} {key_path(path)}",
            expected=expected,
            actual=describe(details["input"]),
            hint=hint or type_hint(details["input"], types),
        )


def _one_line(problem: ConfigError) -> str:
    parts = [f"{problem.where}: {problem.what}"]
    parts += [f"expected {problem.expected}"] if problem.expected else []
    parts += [f"found {problem.actual}"] if problem.actual else []
    parts += [problem.hint] if problem.hint else []
    return "; ".join(part.removesuffix(".") for part in parts)


def _path_in(data: Any, details: ErrorDetails) -> KeyPath:
    """Returns the key path of an error, without pydantic's tags of unions."""
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


def _known_keys(kind: Any, loc: Sequence[str | int]) -> list[str]:
    """Returns the valid keys of the section of an unknown key."""
    sections = _sections_in(kind)
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
    kind = section.model_fields.get("kind")
    return kind and kind.default
