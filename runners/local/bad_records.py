"""Where the records are at which a node has failed."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from runners.record.describe_outputs import RECORD_DIR
from sluice.splits import SERVING

BadRecords = Literal["mixed types", "undecodable images"]


def bad_records(
    run_dir: Path, upstream: Iterable[str], kind: BadRecords
) -> tuple[str, ...]:
    """Returns lines that name the first records of a kind, as an intake has read them.

    Args:
      run_dir: of the run, with its config and the record of its intakes.
      upstream: the nodes that the failed one has read from. If none of them is an
        intake, all are looked into but that of serving data.
      kind: what is the matter with the records.

    Returns:
      Nothing if none is found, or the pipeline has no intake of ours.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        files = list(_files(run_dir / RECORD_DIR, upstream))
        if not files:
            return ()
        # Imported here: in a pipeline built elsewhere the names may be other packages.
        from components.tfrecord_gen.checking.find_bad_records import (
            find_mixed_types,
            find_undecodable_images,
        )
        from pipeline.config import Image
        from pipeline.stored_config import read_stored_config

        if kind == "mixed types":
            return find_mixed_types(files)
        features = read_stored_config(run_dir / "config.json").features or {}
        channels = {
            name: spec.channels
            for name, spec in features.items()
            if isinstance(spec, Image)
        }
        return find_undecodable_images(files, channels)
    return ()


def _files(folder: Path, upstream: Iterable[str]) -> Iterator[tuple[str, str | None]]:
    paths = [folder / f"{name}.intake.json" for name in upstream]
    direct = [path for path in paths if path.exists()]
    for path in direct or sorted(folder.glob("*.intake.json")):
        for artifact in json.loads(path.read_text(encoding="utf-8"))["artifacts"]:
            for file in artifact["files"]:
                if direct or file["split"] != SERVING:
                    yield file["path"], file["split"]
