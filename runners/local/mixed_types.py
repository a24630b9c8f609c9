"""Where the records are that have failed a node by the types of their values."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable
from pathlib import Path

from runners.record.describe_outputs import RECORD_DIR


def mixed_types(run_dir: Path, upstream: Iterable[str]) -> tuple[str, ...]:
    """Returns what ``find_mixed_types`` finds in the files that an intake has read.

    Args:
      run_dir: of the run, with the record of the intake.
      upstream: the nodes that the failed one has read from.

    Returns:
      Nothing if none of them is an intake.
    """
    for name in upstream:
        path = run_dir / RECORD_DIR / f"{name}.intake.json"
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            artifacts = json.loads(path.read_text(encoding="utf-8"))["artifacts"]
            from components.tfrecord_gen.checking.find_mixed_types import (
                find_mixed_types,
            )

            files = [file for artifact in artifacts for file in artifact["files"]]
            return find_mixed_types((file["path"], file["split"]) for file in files)
    return ()
