"""Serializes a resolved config: YAML for people, JSON for a run's processes."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from pipeline.config.config import Config
from pipeline.config.problems import Origin
from sluice.errors import printable
from sluice.privacy import Privacy
from sluice.storage import atomic


def to_yaml(config: Config) -> str:
    """Returns a config as YAML, defaults included, that ``load_config`` can read.

    Comments name the project root, which paths are relative to, and the source files.
    All characters are printable; others than ASCII are escaped.
    """
    origin = config.origin
    sources = [origin.file]
    sources += [origin.profile] if origin.profile else []
    sources += [f"--set {override}" for override in origin.overrides]
    comments = [f"# project root: {origin.root}"]
    comments += [f"# from: {source}" for source in sources]
    text = StringIO()
    _yaml().dump(plain_config(config), text)
    return "\n".join([*map(printable, comments), text.getvalue()])


def _yaml() -> YAML:
    yaml: Any = YAML(typ="safe", pure=True)
    yaml.allow_unicode = False
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False
    # ruamel.yaml 0.18 wraps a quoted string after \\n so that it reads back changed.
    yaml.width = sys.maxsize
    return yaml


def write_stored_config(config: Config, path: Path) -> None:
    """Writes the config with overlays applied and defaults filled in."""
    atomic.write_json(path, stored_config(config))


def stored_config(config: Config) -> dict[str, Any]:
    """Returns what ``write_stored_config`` writes."""
    origin = vars(config.origin)
    return {
        **origin,
        "root": str(config.root),
        "locations": list(config.origin.locations.items()),
        "config": plain_config(config),
    }


def plain_config(config: Config) -> dict[str, Any]:
    """Returns a config as plain JSON data."""
    return json.loads(json.dumps(config.model_dump(by_alias=True)))


def read_stored_config(path: Path) -> Config:
    """Reads what ``write_stored_config`` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    config = Config.model_validate(document["config"])
    config._origin = Origin(
        Path(document["root"]),
        document["file"],
        document["profile"],
        tuple(document["overrides"]),
        {tuple(key): at for key, at in document["locations"]},
    )
    return config


def custom_nodes(path: Path) -> dict[str, Any]:
    """Returns the section ``nodes`` of a stored config."""
    return json.loads(path.read_text(encoding="utf-8"))["config"].get("nodes", {})


def workers_of(path: Path) -> str | None:
    """Returns ``beam.workers`` of a stored config; None if they are chosen."""
    config = json.loads(path.read_text(encoding="utf-8"))["config"]
    workers = config.get("beam", {}).get("workers", "auto")
    return None if workers == "auto" else str(workers)


def privacy_of(path: Path) -> Privacy:
    """Returns what of the data a stored config allows to show."""
    config = json.loads(path.read_text(encoding="utf-8"))["config"]
    label = config["label"]["feature"]
    weight = config.get("train", {}).get("sample_weight")
    features = config.get("features") or {}
    images = {name: x for name, x in features.items() if x["kind"] == "image"}
    return Privacy(config["private"], config["sensitive"], label, weight, images)
