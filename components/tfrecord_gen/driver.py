"""Driver of ``TFRecordGen``: pins the chosen spans and fingerprints their files."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tfx.components.example_gen import driver, utils

from components.tfrecord_gen.exec_properties import SPANS, ExecProperties
from components.tfrecord_gen.report import Report
from components.tfrecord_gen.spans.span_choice import check_unchanged
from components.tfrecord_gen.spans.window import SourceFile
from sluice.storage import digest
from sluice.storage.stat_cache import DIGESTS_FILE, FileDigests
from sluice.storage.storage import is_remote
from sluice.storage.storage_errors import explain_unreadable


class Driver(driver.FileBasedDriver):
    """Driver of ``TFRecordGen`` in local runs.

    TFX's driver resolves one span, and its fingerprint has counts, sizes and times in
    seconds: a touched file is ingested and trained on again, one replaced by ``cp -p``
    is not. Here the fingerprint is a digest of the files' contents; for files in a
    bucket, of their sizes and generations.
    """

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], *arguments: Any, **options: Any
    ) -> dict[str, Any]:
        """Returns the properties with ``spans``, ``span`` and the fingerprint set.

        Raises:
          DataError: a chosen file has changed, or is gone.
        """
        asked = ExecProperties.from_dict(exec_properties)
        window = asked.choose(exec_properties.get(SPANS) or "", time.time())
        check_unchanged(window)
        newest = window.newest
        fingerprint = (
            window.listing_fingerprint()
            if is_remote(window.base)
            else window.fingerprint(digest_reader())
        )
        return {
            **exec_properties,
            SPANS: window.spans_json(),
            utils.SPAN_PROPERTY_NAME: newest.number if newest else 0,
            utils.VERSION_PROPERTY_NAME: newest.version if newest else None,
            utils.FINGERPRINT_PROPERTY_NAME: fingerprint,
        }


def digest_reader() -> Callable[[SourceFile], str]:
    """Returns a function from local file to digest, cached if a cache is set up."""
    memory = os.environ.get(DIGESTS_FILE)
    of = FileDigests(Path(memory)).of if memory else digest.of_file

    def content_of(file: SourceFile) -> str:
        with explain_unreadable(file.path):
            return of(Path(file.path))

    return content_of


def changed_files(
    properties: Mapping[str, Any],
    before: Report,
    digest_of: Callable[[SourceFile], str],
) -> list[str]:
    """Returns a line for each file that is new, gone, moved or changed.

    Of files in a bucket only the sizes are compared. Manifests are not in the report.

    Args:
      properties: exec properties of the node, as set by its driver.
      before: report of the ingestion.
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
            lines.append(f"file {shown}: is gone, or no longer selected")
        elif old[path].split != new[path].split:
            lines.append(f"file {shown}: is in another split")
        elif content(new[path]) not in (old[path].sha256, old[path].size_bytes):
            lines.append(f"file {shown}: content changed")
    return lines
