"""One layer of a config: a YAML file, or a ``--set``, with the line of every key.

Scalars are YAML 1.2's, as people write them: ``1e-3`` is a number, ``on``, ``no`` and
``2024-01-31`` are strings, ``010`` is ten. Refused are duplicate keys, keys that are
not strings, and all tags: a config is plain data.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from pipeline.config.origin import KeyPath, key_path
from sluice.errors import ConfigError, UsageError

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULL = re.compile(r"~|null|Null|NULL|")
_TRUE = re.compile(r"true|True|TRUE")
_FALSE = re.compile(r"false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]{1,300}")
_HEX = re.compile(r"0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")

_SCALARS = (
    (_NULL, lambda text: None),
    (_TRUE, lambda text: True),
    (_FALSE, lambda text: False),
    (_INT, int),
    (_HEX, lambda text: int(text, 16)),
    (_FLOAT, float),
    (_SPECIAL, lambda text: float(text.replace(".", "", 1))),
)

_MAX_DEPTH = 50
_MAX_VALUES = 10_000
_PLAIN_TAGS = {
    f"tag:yaml.org,2002:{name}"
    for name in "null bool int float str timestamp value seq map".split()
}


@dataclass
class Layer:
    """Part of a config, and where each of its keys stands.

    Attributes:
      data: plain mappings, lists, strings, numbers, booleans and None.
      places: ``file:line``, or the ``--set``, for each key path.
    """

    data: dict[str, Any]
    places: dict[KeyPath, str] = field(default_factory=dict)

    def overlaid_with(self, other: Layer) -> Layer:
        """Returns this layer with another on top.

        Mappings merge; everything else (lists, null) replaces, so null and then a
        mapping replaces a mapping. One whose ``kind`` changes is replaced too: the
        keys of the old kind mean nothing to the new one.
        """
        merged = Layer(data=dict(self.data), places=dict(self.places))
        _overlay(merged.data, other.data, (), merged, other)
        return merged


def _overlay(base: dict, top: dict, path: KeyPath, merged: Layer, other: Layer) -> None:
    for key, value in top.items():
        here = (*path, key)
        old = base.get(key)
        if (
            isinstance(old, dict)
            and isinstance(value, dict)
            and value.get("kind", old.get("kind")) == old.get("kind")
        ):
            base[key] = dict(old)
            _overlay(base[key], value, here, merged, other)
            continue
        base[key] = value
        for places, wanted in ((merged.places, False), (other.places, True)):
            below = [p for p in places if p[: len(here)] == here]
            for place in below:
                if wanted:
                    merged.places[place] = places[place]
                else:
                    del places[place]


def read_file(path: Path, shown: str) -> Layer:
    """Reads a YAML file whose top is a mapping.

    Args:
      path: the file.
      shown: what error messages call it.

    Raises:
      UsageError: the file cannot be read.
      ConfigError: it is not UTF-8, not YAML, empty, not a mapping, or has one of the
        things that this module refuses; names line and column.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            "The config cannot be read.", where=shown, actual=error.strerror
        ) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "The config is not UTF-8 text.",
            where=f"{shown}:{line}",
            actual=f"the byte 0x{error.object[error.start]:02x}",
            hint="save it as UTF-8",
        ) from error
    layer = Layer(data={})
    reader = _Reader(shown, layer.places)
    data = reader.read(text)
    if not isinstance(data, dict):
        raise ConfigError(
            "The config is empty." if data is None else "The config is not a mapping.",
            where=shown,
            expected="keys and values, such as 'version: 1'",
            actual=describe(data),
        )
    layer.data = data
    return layer


def read_override(text: str) -> Layer:
    """Reads ``a.b=c`` of a ``--set``; the value is YAML.

    Raises:
      UsageError: there is no key, no ``=`` or no value, or the key path is too long.
      ConfigError: the value is not YAML.
    """
    shown = f"--set {text}"
    key, equals, value = text.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys):
        raise UsageError(
            "A --set does not say what to set to what.",
            where=shown,
            expected="a key path, '=' and a value, such as --set train.epochs=5",
        )
    if len(keys) > _MAX_DEPTH:
        raise UsageError(
            "A --set reaches too deep.",
            where=shown,
            expected=f"at most {_MAX_DEPTH} levels",
            actual=f"{len(keys):,} levels",
        )
    if not value.strip():
        raise UsageError(
            "A --set has no value.",
            where=shown,
            hint=f"for no value, --set {key}=null; for an empty string, "
            f"--set '{key}=\"\"'",
        )
    path: KeyPath = tuple(keys)
    layer = Layer(data={})
    reader = _Reader(shown, layer.places, lines=False)
    data = reader.read(value, path)
    for part in reversed(keys):
        data = {part: data}
    layer.data = data
    layer.places |= {path[:end]: shown for end in range(1, len(path) + 1)}
    return layer


def plain_scalar(text: str) -> Any:
    """Returns what an unquoted scalar means."""
    for pattern, build in _SCALARS:
        if pattern.fullmatch(text):
            return build(text)
    return text


def describe(value: Any) -> str:
    """Returns a value as a reader of the config would call it, on one short line."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return f"{str(value).lower()} (true or false)"
        case int() | float():
            return f"{value} (a number)"
        case dict():
            return f"a mapping with {_short(', '.join(map(str, value)) or 'no keys')}"
        case list() | tuple():
            return f"a list of {len(value)}"
        case _:
            return f"{_short(repr(value))} (a string)"


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


class _Reader:
    """Turns YAML nodes into plain data, noting the place of each key path."""

    def __init__(
        self, shown: str, places: dict[KeyPath, str], *, lines: bool = True
    ) -> None:
        self._shown = shown
        self._places = places
        self._lines = lines
        self._values = 0

    def read(self, text: str, path: KeyPath = ()) -> Any:
        try:
            node = yaml.compose(text, Loader=_Loader)
        except yaml.YAMLError as error:
            raise self._not_yaml(error) from error
        except UnicodeEncodeError as error:
            raise ConfigError("This is not UTF-8 text.", where=self._shown) from error
        return None if node is None else self._value(node, path, depth=0)

    def _not_yaml(self, error: yaml.YAMLError) -> ConfigError:
        mark = getattr(error, "problem_mark", None)
        begin = getattr(error, "context_mark", None)
        found = [getattr(error, "context", None)]
        if begin and mark and begin.line != mark.line:
            found[0] = f"{found[0]} that begins on line {begin.line + 1}"
        found.append(getattr(error, "problem", None) or getattr(error, "reason", None))
        column = f", column {mark.column + 1}" if mark and self._lines else ""
        return ConfigError(
            "This is not YAML.",
            where=f"{self._place(mark)}{column}",
            actual=", ".join(part for part in found if part),
        )

    def _place(self, mark: Any) -> str:
        return f"{self._shown}:{mark.line + 1}" if mark and self._lines else self._shown

    def _value(self, node: yaml.Node, path: KeyPath, depth: int) -> Any:
        self._places.setdefault(path, self._place(node.start_mark))
        self._values += 1
        if depth > _MAX_DEPTH or self._values > _MAX_VALUES:
            self._refuse(
                node,
                "This grows without end, or nearly so.",
                expected=f"at most {_MAX_DEPTH} levels and {_MAX_VALUES} values",
                hint="look for an alias (*name) that holds itself",
            )
        if node.tag not in _PLAIN_TAGS:
            self._refuse(
                node, f"The tag {node.tag!r} is not supported.", hint="quote the value"
            )
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path, depth)
        if isinstance(node, yaml.SequenceNode):
            return [
                self._value(item, (*path, index), depth + 1)
                for index, item in enumerate(node.value)
            ]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: KeyPath, depth: int) -> dict:
        result: dict[str, Any] = {}
        seen: dict[str, int] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node)
            here = (*path, key)
            if key in seen:
                self._refuse(
                    key_node,
                    f"The key {key_path(here)} is given twice.",
                    actual=f"it is already on line {seen[key]}",
                    hint="keep one of them",
                )
            seen[key] = key_node.start_mark.line + 1
            self._places[here] = self._place(key_node.start_mark)
            result[key] = self._value(value_node, here, depth + 1)
        return result

    def _key(self, node: yaml.Node) -> str:
        if isinstance(node, yaml.ScalarNode):
            key = self._scalar(node)
            if isinstance(key, str):
                return key
            self._refuse(
                node, "A key is not a string.", actual=describe(key), hint="quote it"
            )
        self._refuse(node, "A key is not a string.")

    def _scalar(self, node: Any) -> Any:
        if node.style in ("'", '"', "|", ">"):
            return node.value
        return plain_scalar(node.value)

    def _refuse(
        self,
        node: yaml.Node,
        what: str,
        *,
        expected: str | None = None,
        actual: str | None = None,
        hint: str | None = None,
    ) -> NoReturn:
        raise ConfigError(
            what,
            where=self._place(node.start_mark),
            expected=expected,
            actual=actual,
            hint=hint,
        )
