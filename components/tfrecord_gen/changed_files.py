"""Which files differ between an ingestion and the files that are there now."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from components.tfrecord_gen.exec_properties import SPANS, ExecProperties
from components.tfrecord_gen.report import Report
from components.tfrecord_gen.spans.window import SourceFile
from sluice.storage.storage import is_remote


def changed_files(
    properties: Mapping[str, Any],
    before: Report,
    digest_of: Callable[[SourceFile], str],
) -> list[str]:
    """Returns a line for each file that is new, gone, moved or changed.

    Files in a bucket count as changed if their size has; they are not read. Manifests
    are not in the report.

    Args:
      properties: those of the node, as its driver has set them.
      before: of the ingestion.
      digest_of: returns the SHA-256 of a local file.
    """
    asked = ExecProperties.from_dict(properties)
    window = asked.choose(properties.get(SPANS) or "", time.time())
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in window.files}

    def content(file: SourceFile) -> str | int | None:
        return file.size_bytes if is_remote(window.base) else digest_of(file)

    lines = []
    for path in sorted({*old, *new}):
        shown = path.removeprefix(f"{window.base.rstrip('/')}/")
        if path not in old:
            lines.append(f"file {shown}: is new")
        elif path not in new:
            lines.append(f"file {shown}: is gone, or no longer taken")
        elif old[path].split != new[path].split:
            lines.append(f"file {shown}: is in another split")
        elif content(new[path]) not in (old[path].sha256, old[path].size_bytes):
            lines.append(f"file {shown}: content changed")
    return lines
