"""Layers of a config: YAML files and ``--set`` overrides, merged in order."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.config.origin import KeyPath
from pipeline.config.yaml_reader import MAX_DEPTH, YamlReader
from pipeline.config.yaml_values import describe
from sluice.errors import ConfigError, UsageError


@dataclass
class Layer:
    """Part of a config, with the location of each key.

    Attributes:
      data: plain mappings, lists, strings, numbers, booleans and None.
      locations: ``file:line``, or the ``--set``, for each key path.
    """

    data: dict[str, Any]
    locations: dict[KeyPath, str] = field(default_factory=dict)

    def overlaid_with(self, other: Layer) -> Layer:
        """Returns this layer with another on top.

        Mappings are merged; everything else, such as a list or null, is replaced. A
        mapping whose ``kind`` or ``class`` changes is replaced too, since its keys
        belong to the old one, and so is ``model_params`` where ``model`` changes.
        """
        merged = Layer(data=dict(self.data), locations=dict(self.locations))
        if not _is_same(self.data, other.data, ("model",)):
            merged.data.pop("model_params", None)
            _remove_below(merged.locations, ("model_params",))
        _overlay(merged.data, other.data, (), merged, other)
        return merged


def _overlay(base: dict, top: dict, path: KeyPath, merged: Layer, other: Layer) -> None:
    for key, value in top.items():
        here = (*path, key)
        old = base.get(key)
        if (
            isinstance(old, dict)
            and isinstance(value, dict)
            and _is_same(old, value, ("kind", "class"))
        ):
            base[key] = dict(old)
            _overlay(base[key], value, here, merged, other)
            continue
        base[key] = value
        _remove_below(merged.locations, here)
        merged.locations |= {
            path: location
            for path, location in other.locations.items()
            if path[: len(here)] == here
        }


def _is_same(old: dict, new: dict, keys: tuple[str, ...]) -> bool:
    return all(new.get(key, old.get(key)) == old.get(key) for key in keys)


def _remove_below(locations: dict[KeyPath, str], here: KeyPath) -> None:
    for path in [path for path in locations if path[: len(here)] == here]:
        del locations[path]


def read_file(path: Path, shown: str) -> Layer:
    """Reads a YAML file, ``shown`` as such in messages, whose top is a mapping.

    Raises:
      UsageError: the file cannot be read.
      ConfigError: it is not UTF-8, not valid YAML, empty or not a mapping; names line
        and column.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            "the config cannot be read", where=shown, actual=error.strerror
        ) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise ConfigError(
            "the config is not UTF-8 text",
            where=f"{shown}:{line}",
            actual=f"the byte 0x{error.object[error.start]:02x}",
            hint="save it as UTF-8",
        ) from error
    reader = YamlReader(shown)
    data = reader.read(text)
    if not isinstance(data, dict):
        raise ConfigError(
            "the config is empty" if data is None else "the config is not a mapping",
            where=shown,
            expected="keys and values, such as 'version: 1'",
            actual=describe(data),
        )
    return Layer(data, reader.locations)


def read_override(text: str) -> Layer:
    """Reads ``a.b=c`` of a ``--set``; the value is YAML.

    Raises:
      UsageError: there is no key, no ``=`` or no value, or the key path is too long.
      ConfigError: the value is not UTF-8 or not YAML.
    """
    shown = f"--set {text}"
    key, equals, value = text.partition("=")
    keys = key.strip().split(".")
    if not equals or not all(keys):
        raise UsageError(
            "a --set has no key or no value",
            where=shown,
            expected="a key path, '=' and a value, such as --set train.epochs=5",
        )
    if len(keys) > MAX_DEPTH:
        raise UsageError(
            "a --set key is nested too deeply",
            where=shown,
            expected=f"at most {MAX_DEPTH} levels",
            actual=f"{len(keys):,} levels",
        )
    if not value.strip():
        raise UsageError(
            "a --set has no value",
            where=shown,
            hint=f"for no value, --set {key}=null; for an empty string, "
            f"--set '{key}=\"\"'",
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ConfigError("this is not UTF-8 text", where=shown) from error
    path: KeyPath = tuple(keys)
    reader = YamlReader(shown, lines=False)
    data = reader.read(value, path)
    for part in reversed(keys):
        data = {part: data}
    above = {path[:end]: shown for end in range(1, len(path) + 1)}
    return Layer(data, reader.locations | above)
