"""Digests of all inputs of a run, computed without importing TFX.

A run with the inputs of the last complete run has nothing to do, and a run can be
resumed only while its inputs are unchanged.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from components.tfrecord_gen.input_files import SpanChoice
from pipeline.config.config import Config
from pipeline.config.serialize import plain_config
from pipeline.graph.custom_nodes import files_of, modules_of
from sluice import code_fingerprint
from sluice.errors import bounded
from sluice.project import own_root
from sluice.storage import digest, stat_cache
from sluice.storage.stat_cache import FileDigests
from sluice.workspace import Workspace, installed_version

_PACKAGES = (*code_fingerprint.PACKAGES, "apache-beam", "ml-metadata", "tfx-bsl")
_NO_RESULT = ("cloud", "description", "notify", "private")


@dataclass(frozen=True)
class RunInputs:
    """Digests of a run's inputs.

    Attributes:
      config: the resolved config, without keys that change no result.
      places: the project root, the workspace and the serving directory.
      schema: the content of the schema file.
      code: each module of the graph, the nodes and the user, by name.
      data: the content of each input file, by its path below the data directory.
      packages: versions, Python's among them.
    """

    config: dict[str, Any]
    places: dict[str, str]
    schema: str
    code: dict[str, str]
    data: dict[str, str]
    packages: dict[str, str | None]

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return asdict(self)

    def summary(self) -> dict[str, Any]:
        """Returns one digest per part, for the run's record."""
        return {
            "config": _digest(self.config),
            "schema": self.schema,
            "code": _digest(self.code),
            "data": _digest(self.data),
        }


def run_inputs(
    config: Config,
    workspace_root: Path,
    serving_dir: str,
    choice: SpanChoice,
    digests: FileDigests,
) -> RunInputs:
    """Returns the inputs of a run, as they are now.

    The caller saves ``digests``, the cache of the data's digests.

    Raises:
      UsageError: an input file is missing, or cannot be read.
      ConfigError: code is missing or is not valid Python.
      OSError: a file cannot be read.
    """
    stat_cache.use_sources_file(Workspace(workspace_root).sources_file)
    roots = list(dict.fromkeys([own_root(), config.root]))
    entries = ["pipeline.graph.create_pipeline", *modules_of(config)]
    code = code_fingerprint.digests_of(entries, roots)
    for path in files_of(config):
        code |= code_fingerprint.of_file(path, roots)
    inputs = RunInputs(
        config={
            key: value
            for key, value in plain_config(config).items()
            if key not in _NO_RESULT
        },
        places={
            "root": str(config.root),
            "workspace": str(workspace_root),
            "serving": serving_dir,
        },
        schema=digest.of_file(config.schema_path),
        code=code,
        data={
            name: content
            for window in choice.windows.values()
            for name, content in window.contents(digests.of).items()
        },
        packages={
            "python": platform.python_version(),
            **{name: installed_version(name) for name in _PACKAGES},
        },
    )
    stat_cache.save_sources()
    return inputs


def differences(
    before: dict[str, Any], now: dict[str, Any], parts: Sequence[str]
) -> list[str]:
    """Returns what has changed between two inputs, one line for each part.

    Both are as ``RunInputs.to_dict`` returns them.
    """
    lines = []
    for part in parts:
        old, new = before.get(part), now[part]
        if isinstance(old, dict) and isinstance(new, dict):
            names = {name for name in {*old, *new} if old.get(name) != new.get(name)}
            if names:
                lines.append(f"{part}: {', '.join(bounded(sorted(names)))}")
        elif old != new:
            lines.append(part)
    return lines


def _digest(value: Any) -> str:
    return digest.of_bytes(json.dumps(value, sort_keys=True).encode())
