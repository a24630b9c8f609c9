"""What the record keeps of a ``Quarantine`` artifact: the report of the ingestion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MAX_FILES = 1000


def document_ingestion(directory: Path) -> dict[str, Any]:
    """Returns the report, with the first ``MAX_FILES`` files and those with errors.

    Raises:
      OSError: the report cannot be read.
      ValueError, KeyError, TypeError: it is damaged.
    """
    from components.tfrecord_gen.report import Report

    document = Report.load(str(directory)).to_dict()
    del document["schema_version"]
    files = document["files"]
    kept = [
        file
        for index, file in enumerate(files)
        if index < MAX_FILES or file["quarantined"]
    ][: 2 * MAX_FILES]
    return {**document, "files": kept, "files_left_out": len(files) - len(kept)}
