"""The resolved config of a run, stored beside it, as the run's processes read it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipeline.config.config import Config, Origin
from sluice.storage import atomic


def write_stored_config(config: Config, path: Path) -> None:
    """Writes the config with overlays applied and defaults filled in."""
    document = {
        "root": str(config.root),
        "file": config.origin.file,
        "profile": config.origin.profile,
        "overrides": list(config.origin.overrides),
        "config": plain_config(config),
    }
    atomic.write_json(path, document)


def plain_config(config: Config) -> dict[str, Any]:
    """Returns every key of a config as JSON has it."""
    return json.loads(json.dumps(config.model_dump(by_alias=True)))


def read_stored_config(path: Path) -> Config:
    """Reads what ``write_stored_config`` wrote."""
    document = json.loads(path.read_text(encoding="utf-8"))
    config = Config.model_validate(document["config"])
    config._origin = Origin(
        root=Path(document["root"]),
        file=document["file"],
        profile=document["profile"],
        overrides=tuple(document["overrides"]),
    )
    return config


def sensitive_features(path: Path) -> list[str]:
    """Returns the features whose values are not shown."""
    return json.loads(path.read_text(encoding="utf-8"))["config"]["sensitive"]
