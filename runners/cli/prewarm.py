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
from runners.local.processes.process_pool import ProcessPool
from sluice.errors import UsageError
from sluice.project import find_root
from sluice.workspace import locate


@contextmanager
def prewarm(
    name: str, workspace_dir: str | None, command: str
) -> Iterator[ProcessPool | None]:
    """Starts the zygote of a run; ends it if none comes.

    Args:
      name: of the pipeline, or a path to its config.
      workspace_dir: as the user has given it.
      command: what was typed.

    Yields:
      None where the run will probably have nothing to do, or cannot be, for a reason
      that it will find and say itself.
    """
    process_pool = _start(name, workspace_dir, command)
    with process_pool or nullcontext():
        yield process_pool


def _start(name: str, workspace_dir: str | None, command: str) -> ProcessPool | None:
    try:
        config_file = find_config(name, Path.cwd())
        root = find_root(config_file.parent)
        workspace = locate(root, config_file.stem, workspace_dir)
        if likely_unchanged(workspace, config_file, command):
            return None
        return ProcessPool(cwd=root)
    except UsageError:
        return None
