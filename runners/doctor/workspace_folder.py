"""Whether the folder of the workspaces can be written, by writing there."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from runners.doctor.check import Check
from runners.doctor.existing_parent import existing_parent


def check_workspace_folder(folder: Path | None) -> Check:
    """Writes a file and removes it; nothing of it stays.

    Args:
      folder: of the workspaces, or where it will be; None where there is no project.
    """
    if folder is None:
        return Check(
            "workspace",
            "warning",
            f"no project: no configs/ in {Path.cwd()} or above",
            "change into a project, or say which folder with --workspace DIR",
        )
    place = existing_parent(folder)
    hint = "choose another folder with --workspace DIR or SLUICE_WORKSPACE"
    if not place.is_dir():
        return Check("workspace", "problem", f"{place} is not a directory", hint)
    try:
        with tempfile.NamedTemporaryFile(dir=place, prefix=".sluice-doctor-") as file:
            file.write(bytes(4096))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        found = f"{place} cannot be written: {error.strerror}"
        return Check("workspace", "problem", found, hint)
    made = "" if place == folder.absolute() else "; the first run makes it"
    return Check("workspace", "ok", f"{folder}{made}")
