"""Starts the import of TFX before anything else of a run is imported or checked.

The import is most of what a small run takes, and has a core of its own meanwhile. Where
there will be nothing to do it is only in the way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from pipeline.config.find import find_config
from runners.cache.up_to_date import likely_unchanged
from runners.local.engine import LocalEngine
from sluice.errors import UsageError
from sluice.project import find_root
from sluice.workspace import locate


@contextmanager
def prewarm(
    name: str, workspace_dir: str | None, command: str
) -> Iterator[LocalEngine | None]:
    """Yields an engine that has begun to import TFX; ends it if no run comes.

    Args:
      name: of the pipeline, or a path to its config.
      workspace_dir: as the user has given it.
      command: what was typed.

    Yields:
      None where the run will probably have nothing to do, or cannot be, for a reason
      that it will find and say itself.
    """
    engine = _start(name, workspace_dir, command)
    with engine or nullcontext():
        yield engine


def _start(name: str, workspace_dir: str | None, command: str) -> LocalEngine | None:
    try:
        config_file = find_config(name, Path.cwd())
        root = find_root(config_file.parent)
        workspace = locate(root, config_file.stem, workspace_dir)
        if likely_unchanged(workspace, config_file, command):
            return None
        engine = LocalEngine()
        engine.prewarm(root)
        return engine
    except UsageError:
        return None
