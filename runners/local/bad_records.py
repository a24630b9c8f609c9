"""Finds the input records that made a node fail."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from runners.local.write_documents import RECORD_DIR
from sluice.splits import SERVING

BadRecords = Literal["mixed types", "undecodable images"]


def bad_records(
    run_dir: Path, upstream: Iterable[str], kind: BadRecords
) -> tuple[str, ...]:
    """Returns lines that name the first ingested records with a defect.

    Args:
      run_dir: the run's folder, with its config and its ingestion documents.
      upstream: the nodes that the failed one reads from. If none of them is an
        ingestion, all ingestions but that of serving data are searched.
      kind: the defect.

    Returns:
      Nothing if none is found, or if the pipeline has no TFRecordGen.
    """
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        ingestions = list(_ingestions(run_dir / RECORD_DIR, upstream))
        if not ingestions:
            return ()
        files = [
            (file["path"], file["split"])
            for ingestion in ingestions
            for file in ingestion["files"]
        ]
        limit = max(ingestion["max_record_bytes"] for ingestion in ingestions)
        # Imported here: in a pipeline built elsewhere the names may be other packages.
        from components.tfrecord_gen.checking.find_bad_records import (
            find_mixed_types,
            find_undecodable_images,
        )
        from pipeline.config.features import Image
        from pipeline.config.serialize import read_stored_config

        if kind == "mixed types":
            return find_mixed_types(files, max_record_bytes=limit)
        features = read_stored_config(run_dir / "config.json").features or {}
        channels = {
            name: spec.channels
            for name, spec in features.items()
            if isinstance(spec, Image)
        }
        return find_undecodable_images(files, channels, max_record_bytes=limit)
    return ()


def _ingestions(folder: Path, upstream: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yields the ingestion documents, without the files of serving requests."""
    paths = [folder / f"{name}.ingestion.json" for name in upstream]
    direct = [path for path in paths if path.exists()]
    for path in direct or sorted(folder.glob("*.ingestion.json")):
        for ingestion in json.loads(path.read_text(encoding="utf-8"))["artifacts"]:
            files = [f for f in ingestion["files"] if direct or f["split"] != SERVING]
            yield {**ingestion, "files": files}
