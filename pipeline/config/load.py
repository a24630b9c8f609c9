"""Loads a config: finds the file, merges profile and ``--set``, checks each value.

``validate`` then checks it against the schema and the metrics. Neither imports
TensorFlow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from pipeline.config.config import Config
from pipeline.config.find import find_config, find_file
from pipeline.config.problems import KeyPath, Origin, Problems
from pipeline.config.tune import SELECTORS
from sluice.errors import ConfigError, UsageError
from sluice.project import find_root, own_root


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
                and _is_same(old, value, *SELECTORS)
            ):
                self._overlay(old, top, value, here)
                continue
            base[key] = value
            for below, at in top.locations.items():
                if below[: len(here)] == here:
                    self.locations[below] = at


def _is_same(old: dict[str, Any], new: dict[str, Any], *keys: str) -> bool:
    return all(new.get(key, old.get(key)) == old.get(key) for key in keys)


def read_file(path: Path, shown: str) -> Layer:
    """Reads a YAML file, ``shown`` as such in messages.

    Raises:
      UsageError: the file cannot be read.
      ConfigError: it is not a mapping in YAML.
    """
    if not path.is_file():  # A pipe would wait for ever.
        raise UsageError("the config is not a file", where=shown)
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
    yaml, path = YAML(typ="safe", pure=True), below or ()

    def location(mark: Any) -> str:
        return f"{shown}:{mark.line + 1}" if mark and below is None else shown

    try:
        node = yaml.compose(text)
        nodes = [*_nodes(node, path)] if node else []
        data: Any = None if node is None else yaml.constructor.construct_document(node)
    except Exception as error:  # ruamel lets errors of its constructors through.
        raise ConfigError(
            f"this is not valid YAML: {getattr(error, 'problem', error)}",
            where=location(getattr(error, "problem_mark", None)),
        ) from error
    above = {path[:end]: shown for end in range(1, len(path) + 1)}
    return Layer(data, above | {key: location(mark) for key, mark in nodes})


def _nodes(node: Node, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    """Yields the key path and the mark of each value below a node."""
    if isinstance(node, MappingNode):
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                what = "a list or a mapping cannot be a key"
                raise MarkedYAMLError(problem=what, problem_mark=key.start_mark)
            yield (*path, key.value), key.start_mark
            yield from _nodes(value, (*path, key.value))
    elif isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield (*path, index), item.start_mark
            yield from _nodes(item, (*path, index))


def load_config(
    name_or_path: str,
    *,
    profile: str | None = None,
    overrides: Sequence[str] = (),
    cwd: Path | None = None,
) -> Config:
    """Returns a pipeline's config, with each value checked by itself.

    A name is ``configs/NAME.yaml`` of the project that ``cwd`` is in, or else one of
    those that come with Sluice; anything with a slash, or ending in .yaml or .yml, is a
    path. The project root is the nearest directory above the config that contains
    ``configs/``. ``configs/profiles/PROFILE.yaml`` (of the project, or else Sluice's
    own) is merged over the config, then each override in turn. A profile that lists
    ``pipelines`` is for configs of these names only.

    Args:
      name_or_path: a config's name, or its path (from ``cwd`` if relative).
      profile: an overlay's name.
      overrides: ``a.b=c``, the value in YAML.
      cwd: where to look from; the current directory if None.

    Raises:
      UsageError: there is no such config or profile (it lists those that there are),
        it cannot be read, it is in no project, or an override is malformed.
      ConfigError: the config is wrong; names file, line and key path.
    """
    cwd = Path.cwd() if cwd is None else Path(cwd).resolve()
    file = find_config(name_or_path, cwd)
    root = find_root(file.parent)
    shown = _shown(file, cwd)
    layer = read_file(file, shown)
    shown_profile = None
    if profile is not None:
        path = find_file(profile, (root, own_root()), "configs/profiles", "profile")
        shown_profile = _shown(path, cwd)
        overlay = read_file(path, shown_profile)
        _refuse_profile_of_others(overlay, layer.data.get("name"))
        layer.overlay(overlay)
    for override in overrides:
        layer.overlay(read_override(override))
    origin = Origin(root, shown, shown_profile, tuple(overrides), layer.locations)
    try:
        config = Config.model_validate(layer.data)
    except ValidationError as error:
        problems = Problems(origin)
        problems.add_refused(error, layer.data)
        problems.raise_if_any()
        raise
    config._origin = origin
    _refuse_name_of_another(config, file)
    return config


def _shown(path: Path, cwd: Path) -> str:
    return str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)


def _refuse_name_of_another(config: Config, file: Path) -> None:
    """Refuses a copied config that would write to the workspace of the original."""
    other = config.root / "configs" / f"{config.name}.yaml"
    if other.is_file() and not other.samefile(file):
        raise ConfigError(
            f"the config has the name of another one, {other}, and would share its "
            "workspace and serving directory",
            where=config.origin.location(("name",)),
            hint="change 'name'",
        )


def _refuse_profile_of_others(profile: Layer, name: object) -> None:
    """Takes ``pipelines`` off a profile; refuses it for the configs of other names."""
    names = profile.data.pop("pipelines", [name])
    if not isinstance(names, list) or name not in names:
        raise ConfigError(
            f"the profile is not for the pipeline {name!r}: it lists {names}",
            where=profile.locations[("pipelines",)],
            hint=f"choose another profile; if it fits, add {name} to its 'pipelines'",
        )
