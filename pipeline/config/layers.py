"""Layers of a config: YAML files and ``--set`` overrides, merged in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import MappingNode, Node, SequenceNode

from pipeline.config.problems import KeyPath
from sluice.errors import ConfigError, UsageError


@dataclass
class Layer:
    """Part of a config, with ``file:line`` or the ``--set`` of each key path."""

    data: dict[str, Any]
    locations: dict[KeyPath, str]

    def overlay(self, top: Layer) -> None:
        """Merges another layer into this one.

        Mappings are merged; everything else, such as a list or null, is replaced. A
        mapping whose ``kind`` or ``class`` changes is replaced too, since its keys
        belong to the old one, and so is ``model_params`` where ``model`` changes.
        """
        if not _is_same(self.data, top.data, "model"):
            self.data.pop("model_params", None)
        self._overlay(self.data, top, top.data, ())

    def _overlay(
        self, base: dict[str, Any], top: Layer, data: dict[str, Any], path: KeyPath
    ) -> None:
        for key, value in data.items():
            here, old = (*path, key), base.get(key)
            if (
                isinstance(old, dict)
                and isinstance(value, dict)
                and _is_same(old, value, "kind", "class")
            ):
                self._overlay(old, top, value, here)
                continue
            base[key] = value
            for below in [below for below in self.locations if _is_in(below, here)]:
                del self.locations[below]
            new = ((p, at) for p, at in top.locations.items() if _is_in(p, here))
            self.locations.update(new)


def _is_same(old: dict[str, Any], new: dict[str, Any], *keys: str) -> bool:
    return all(new.get(key, old.get(key)) == old.get(key) for key in keys)


def _is_in(path: KeyPath, section: KeyPath) -> bool:
    return path[: len(section)] == section


def read_file(path: Path, shown: str) -> Layer:
    """Reads a YAML file, ``shown`` as such in messages.

    Raises:
      UsageError: the file cannot be read.
      ConfigError: it is not a mapping in YAML.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeError) as error:
        raise UsageError(f"the config cannot be read: {error}", where=shown) from error
    layer = _read_yaml(text, shown)
    if not isinstance(layer.data, dict):
        raise ConfigError("the config is empty, or not a mapping", where=shown)
    return layer


def read_override(text: str) -> Layer:
    """Reads ``a.b=c`` of a ``--set``; the value is YAML.

    Raises:
      UsageError: it has no key or no ``=``.
      ConfigError: the value is not YAML.
    """
    key, equals, value = text.partition("=")
    path: KeyPath = tuple(key.strip().split("."))
    if not equals or not all(path):
        raise UsageError(
            "a --set has no key or no value",
            where=f"--set {text}",
            expected="a key path, '=' and a value, such as --set train.epochs=5",
        )
    layer = _read_yaml(value, f"--set {text}", path)
    for part in reversed(path):
        layer.data = {str(part): layer.data}
    return layer


def _read_yaml(text: str, shown: str, below: KeyPath | None = None) -> Layer:
    """Reads YAML, whose lines are named unless it is the value ``below`` a key path."""
    yaml = YAML(typ="safe", pure=True)

    def location(mark: Any) -> str:
        return f"{shown}:{mark.line + 1}" if mark and below is None else shown

    try:
        node = yaml.compose(text)
        data: Any = None if node is None else yaml.constructor.construct_document(node)
    except Exception as error:  # ruamel lets errors of its constructors through.
        raise ConfigError(
            f"this is not valid YAML: {getattr(error, 'problem', error)}",
            where=location(getattr(error, "problem_mark", None)),
        ) from error
    path = below or ()
    above = {path[:end]: shown for end in range(1, len(path) + 1)}
    nodes = _nodes(node, path) if node else ()
    return Layer(data, above | {key: location(mark) for key, mark in nodes})


def _nodes(node: Node, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yields the key path and the mark of each value below a node."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark
            yield from _nodes(value, (*path, key.value))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark
            yield from _nodes(item, (*path, index))
