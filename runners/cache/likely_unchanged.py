"""A guess, within milliseconds, whether a run will have nothing to do.

It decides only whether TFX is imported while the run looks at its inputs; whether there
is nothing to do is decided by that look alone.
"""

from __future__ import annotations

import json
from pathlib import Path

from sluice.record.run_record import RECORD_FILE
from sluice.storage.stat_cache import unchanged_files
from sluice.workspace import Workspace


def likely_unchanged(workspace: Workspace, config_file: Path, command: str) -> bool:
    """Whether the same command has been complete, and no file has changed since.

    Args:
      workspace: of the pipeline.
      config_file: of the pipeline.
      command: what was typed.
    """
    try:
        complete = json.loads(workspace.complete_file.read_text(encoding="utf-8"))
        record = workspace.run_dir(complete["run_id"]) / RECORD_FILE
        if json.loads(record.read_text(encoding="utf-8"))["command"] != command:
            return False
        data = unchanged_files(workspace.digests_file)
        code = unchanged_files(workspace.sources_file)
        if not data or not code:
            return False
        # A new file is known to nobody, but its folder has changed.
        others = {config_file, *(path.parent for path in data)}
        since_ns = workspace.complete_file.stat().st_mtime_ns
        return all(path.stat().st_mtime_ns <= since_ns for path in others)
    except (OSError, ValueError, KeyError, TypeError):
        return False
