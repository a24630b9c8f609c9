"""Loads a config: finds the file, merges profile and ``--set``, checks each value.

``validate`` then checks it against the schema and the metrics. Neither imports
TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pipeline.config.config import CONFIG_VERSION, Config
from pipeline.config.find import find_config, find_profile
from pipeline.config.layers import Layer, read_file, read_override
from pipeline.config.origin import KeyPath, Origin, key_path
from pipeline.config.problems import Problems
from pipeline.config.yaml_values import LIST, describe, type_hint
from sluice.errors import ConfigError, UsageError
from sluice.project import find_root


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
        path = find_profile(profile, root)
        shown_profile = _shown(path, cwd)
        overlay = read_file(path, shown_profile)
        _refuse_profile_of_others(overlay, layer.data.get("name"))
        layer = layer.overlaid_with(overlay)
    for override in overrides:
        top = read_override(override)
        _refuse_list_index(layer, top, override)
        layer = layer.overlaid_with(top)
    origin = Origin(
        root=root,
        file=shown,
        profile=shown_profile,
        overrides=tuple(overrides),
        locations=layer.locations,
    )
    problems = Problems(origin)
    _check_version(layer.data, problems)
    try:
        config = Config.model_validate(layer.data)
    except ValidationError as error:
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
    if file.stem == config.name or not other.is_file() or other.samefile(file):
        return
    raise ConfigError(
        f"the config has the name of another config: {config.name!r}",
        where=config.origin.location(("name",)),
        expected=f"a name of its own, such as {file.stem!r}",
        actual=f"{other} has the workspace and the serving directory of that name",
        hint=f"change `name:` in {config.origin.file}",
    )


def _refuse_profile_of_others(profile: Layer, name: object) -> None:
    """Takes ``pipelines`` off a profile; refuses it for the configs of other names."""
    if "pipelines" not in profile.data:
        return
    names = profile.data.pop("pipelines")
    where = profile.locations[("pipelines",)]
    if not isinstance(names, list):
        raise ConfigError(
            "invalid value for pipelines",
            where=where,
            expected="a list of the names of configs",
            actual=describe(names),
            hint=type_hint(names, [LIST]),
        )
    if name not in names:
        raise ConfigError(
            "the profile is for other pipelines",
            where=where,
            expected=", ".join(map(str, names)),
            actual=str(name),
            hint=f"choose another profile; if it fits, add {name} to its `pipelines`",
        )


def _refuse_list_index(layer: Layer, top: Layer, override: str) -> None:
    keys: KeyPath = tuple(override.partition("=")[0].strip().split("."))
    value: object = layer.data
    for end, key in enumerate(keys):
        if isinstance(value, list):
            raise UsageError(
                f"--set cannot reach into a list: {key_path(keys[:end])} is one",
                where=f"--set {override}",
                expected="the whole list",
                hint=f"--set '{key_path(keys[:end])}=[...]', or a profile",
            )
        value = value.get(key) if isinstance(value, dict) else None


def _check_version(data: dict[str, Any], problems: Problems) -> None:
    """Rejects other versions first, since their keys may differ."""
    version = data.get("version")
    if type(version) is int and version == CONFIG_VERSION:
        return
    right = f"version: {CONFIG_VERSION}"
    if "version" in data:
        problems.add(
            ("version",),
            "this Sluice cannot read the config's version",
            expected=right,
            actual=describe(version),
        )
    else:
        problems.add(
            ("version",),
            "the config has no version",
            expected=right,
            hint=f"write '{right}' as the first line",
        )
    problems.raise_if_any()
