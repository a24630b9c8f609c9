"""Checks that baselines and served versions are undamaged."""

from __future__ import annotations

import os
from pathlib import Path

from components.baseline_model.blessed_models import search_baseline, served_copy
from runners.doctor.check import Check, CheckState
from runners.metadata.read_metadata import read_metadata
from runners.metadata.served_models import ServedModel, served_models
from runners.retention.retire_model import find_blessed_models, model_name
from sluice.errors import bounded
from sluice.storage.storage import is_remote
from sluice.workspace import Workspace

_NAME = "baselines"


def check_baselines(folder: Path) -> Check:
    """Checks all files of each pipeline's latest blessed model.

    ``folder`` is a pipeline's workspace, or that of all workspaces.
    """
    checks = [_check_baseline(path) for path in _databases(folder)]
    damaged = [item for item in checks if item.state != "ok"]
    found = "; ".join(item.found for item in damaged or checks)
    if not damaged:
        return Check(_NAME, "ok", found or "none yet")
    is_lost = any(item.state == "problem" for item in damaged)
    hint = "; ".join(item.hint for item in damaged if item.hint)
    return Check(_NAME, "problem" if is_lost else "warning", found, hint)


def _check_baseline(metadata_db: Path) -> Check:
    pipeline = metadata_db.parent.name
    graph = read_metadata(metadata_db)
    looked_at = list(search_baseline(find_blessed_models(graph)))
    damaged = [(model, why) for model, why in looked_at if why and not model.retired]
    usable = [model_name(graph, model) for model, why in looked_at if not why]
    if not damaged:
        return Check(_NAME, "ok", f"{pipeline}: {usable[0] if usable else 'none yet'}")
    model, why = damaged[0]
    found = f"{pipeline}: {model_name(graph, model)} is {why} ({model.model.uri})"
    if copy := served_copy(model, graph.artifacts.values()):
        return Check(_NAME, "warning", found, f"the next run restores it from {copy}")
    retire = f"sluice models retire {pipeline} --damaged --reason ..."
    if usable:
        hint = f"{usable[0]} is used instead; restore the files, or: {retire}"
        return Check(_NAME, "warning", found, hint)
    hint = f"restore the files, or continue without a baseline: {retire}"
    return Check(_NAME, "problem", found, hint)


def check_serving(folder: Path) -> Check:
    """Compares all files of each served version with what was pushed."""
    served = [item for path in _databases(folder) for item in _served(path)]
    newest = {os.path.dirname(item.version.uri): item.version for item in served}
    differing = [
        (item.version, difference)
        for item in served
        if (difference := item.version.difference())
    ]
    if not differing:
        count = len(served)
        found = f"{count} version{'' if count == 1 else 's'}" if count else "none yet"
        return Check("serving", "ok", found)
    lines = [
        f"{version.uri} differs from what was pushed: {difference}"
        for version, difference in differing
    ]
    # A server loads the highest number.
    is_loaded = any(version in newest.values() for version, _ in differing)
    uri = differing[0][0].uri
    move = "gcloud storage mv" if is_remote(uri) else "mv"
    hint = f"inspect it, then: {move} {uri} {uri}.aside, and run the pipeline again"
    state: CheckState = "problem" if is_loaded else "warning"
    return Check("serving", state, "; ".join(bounded(lines)), hint)


def _served(metadata_db: Path) -> list[ServedModel]:
    serving = Workspace(metadata_db.parent).serving
    return served_models(read_metadata(metadata_db), [serving])


def _databases(folder: Path) -> list[Path]:
    """Returns the metadata of a pipeline's workspace, or of all workspaces in it."""
    own = Workspace(folder).metadata_db
    return [own] if own.exists() else sorted(folder.glob(f"*/{own.name}"))
