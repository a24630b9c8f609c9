"""Whether the models that new ones are compared with are undamaged."""

from __future__ import annotations

from pathlib import Path

from components.baseline.blessed_models import served_copy, up_to_usable
from runners.doctor.check import Check
from runners.metadata.read_metadata import read_metadata
from runners.retention.baselines import blessed_in, name_in, pushes_in
from sluice.workspace import Workspace

_NAME = "baselines"


def check_baselines(folder: Path) -> Check:
    """Reads every byte of each pipeline's latest blessed model.

    Args:
      folder: a pipeline's workspace, or the folder of all workspaces.
    """
    databases = [Workspace(folder).metadata_db]
    if not databases[0].exists():
        databases = sorted(folder.glob(f"*/{databases[0].name}"))
    checks = [_check(path) for path in databases]
    damaged = [item for item in checks if item.state != "ok"]
    found = "; ".join(item.found for item in damaged or checks)
    if not damaged:
        return Check(_NAME, "ok", found or "none yet")
    is_lost = any(item.state == "problem" for item in damaged)
    hint = "; ".join(item.hint for item in damaged if item.hint)
    return Check(_NAME, "problem" if is_lost else "warning", found, hint)


def _check(metadata_db: Path) -> Check:
    pipeline = metadata_db.parent.name
    graph = read_metadata(metadata_db)
    looked_at = list(up_to_usable(blessed_in(graph)))
    damaged = [(model, why) for model, why in looked_at if why and not model.retired]
    usable = [name_in(graph, model) for model, why in looked_at if not why]
    if not damaged:
        return Check(_NAME, "ok", f"{pipeline}: {usable[0] if usable else 'none yet'}")
    model, why = damaged[0]
    found = f"{pipeline}: {name_in(graph, model)} is {why} ({model.model.uri})"
    if copy := served_copy(model, pushes_in(graph)):
        return Check(_NAME, "warning", found, f"the next run restores it from {copy}")
    retire = f"sluice models retire {pipeline} --damaged --reason ..."
    if usable:
        hint = f"{usable[0]} stands in; restore the files, or: {retire}"
        return Check(_NAME, "warning", found, hint)
    hint = f"restore the files, or let the next model be the first: {retire}"
    return Check(_NAME, "problem", found, hint)
