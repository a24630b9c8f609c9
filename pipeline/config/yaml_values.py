"""Describes YAML values in error messages, and how to write one of another type."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

NULL = "null"
BOOLEAN = "true or false"
WHOLE_NUMBER = "a whole number"
DECIMAL_NUMBER = "a decimal number"
STRING = "a string"
LIST = "a list"
MAPPING = "a mapping"

_BOOLEANS_OF_YAML_1_1 = {"yes": "true", "on": "true", "no": "false", "off": "false"}
_NUMBER = re.compile(r"[-+]?[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?")


def type_of(value: Any) -> str:
    """Returns the type of a value, one of this module's constants."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int():
            return WHOLE_NUMBER
        case float():
            return DECIMAL_NUMBER
        case str():
            return STRING
        case dict():
            return MAPPING
    return LIST


def describe(value: Any) -> str:
    """Returns a value and its type, on one short line."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"{str(value).lower()} (a boolean)"
        case int() | float():
            return f"{value} (a number)"
        case dict():
            return f"a mapping with {_short(', '.join(map(str, value)) or 'no keys')}"
        case list() | tuple():
            return f"a list of {len(value)}"
    return f"{_short(repr(value))} (a string)"


def one_of(types: Collection[str]) -> str:
    """Returns types as text, such as ``a number or a string``."""
    names = {*types}
    if names >= {WHOLE_NUMBER, DECIMAL_NUMBER}:
        names = names - {WHOLE_NUMBER, DECIMAL_NUMBER} | {"a number"}
    return " or ".join(sorted(names))


def type_hint(value: Any, expected: Collection[str]) -> str | None:
    """Returns how to write a value as one of the expected types; None if unclear."""
    if isinstance(value, str):
        if LIST in expected:
            return f"write a list: [{_short(value)}]"
        boolean = _BOOLEANS_OF_YAML_1_1.get(value.lower())
        if boolean and BOOLEAN in expected:
            return f"write {boolean}: in YAML 1.2 yes, no, on and off are strings"
        numbers = {WHOLE_NUMBER, DECIMAL_NUMBER} & {*expected}
        if numbers and _NUMBER.fullmatch(value):
            without = "underscores" if "_" in value else "quotes"
            return f"write {value.replace('_', '')}, without {without}"
    elif type_of(value) in (WHOLE_NUMBER, DECIMAL_NUMBER):
        if STRING in expected:
            return f'quote it: "{value}"'
        if DECIMAL_NUMBER in expected:
            return f"write {value}.0"
    return None


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
