"""Restores the files of a damaged model from the version that serves the same bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from components.baseline.blessed_models import BlessedModel


def restore(model: BlessedModel, source: Path) -> bool:
    """Replaces a model's SavedModel by an undamaged copy of it.

    Killed in between, it leaves a model that is still damaged, and hidden folders
    beside it which the next restoration removes.

    Args:
      model: whose ``contents`` say where the SavedModel belongs.
      source: a directory with the same bytes; see ``served_copy``.

    Returns:
      Whether the model is undamaged now; not so on a full disk, or where files of the
      artifact beside the SavedModel are damaged too.
    """
    contents = model.contents
    if contents is None or contents.model_dir is None:
        return False
    root = Path(model.model.uri)
    target = root / contents.model_dir
    incoming, outgoing = root / ".restored", root / ".damaged"
    try:
        for path in (incoming, outgoing):
            shutil.rmtree(path, ignore_errors=True)
        target.parent.mkdir(parents=True, exist_ok=True)
        # Who may read it follows from the workspace, not from what is served.
        shutil.copytree(source, incoming, copy_function=shutil.copyfile)
        if os.path.lexists(target):
            os.rename(target, outgoing)
        os.rename(incoming, target)
    except OSError:
        return False
    finally:
        for path in (incoming, outgoing):
            shutil.rmtree(path, ignore_errors=True)
    return model.damage() is None
