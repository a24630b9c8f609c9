"""Driver of ``TFRecordGen``: fingerprints the chosen files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tfx.components.example_gen import driver, utils

from components.tfrecord_gen.input_files import DigestOf
from components.tfrecord_gen.report import Report
from components.tfrecord_gen.span_choice import window_of
from sluice.storage import digest
from sluice.storage.stat_cache import DIGESTS_FILE, FileDigests
from sluice.storage.storage import is_remote


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
        """Returns the properties with ``span``, ``version`` and the fingerprint set.

        Raises:
          DataError: a chosen file has changed, or is gone.
        """
        window = window_of(exec_properties)
        newest = window.spans[-1] if window.spans else None
        return {
            **exec_properties,
            utils.SPAN_PROPERTY_NAME: newest.number if newest else 0,
            utils.VERSION_PROPERTY_NAME: newest.version if newest else None,
            utils.FINGERPRINT_PROPERTY_NAME: window.fingerprint(_digest_of()),
        }


def _digest_of() -> DigestOf:
    """Returns the digests of local files, from a cache if the run has one."""
    memory = os.environ.get(DIGESTS_FILE)
    return FileDigests(Path(memory)).of if memory else digest.of_file


def changed_files(properties: Mapping[str, Any], before: Report) -> list[str]:
    """Returns a line for each file that is new, gone, moved or changed.

    Of files in a bucket only the sizes are compared. Manifests are not in the report.

    Args:
      properties: exec properties of the node, as set by its driver.
      before: report of the ingestion.
    """
    window, digest_of = window_of(properties), _digest_of()
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in window.files}
    lines = {path: "is new" for path in new.keys() - old.keys()}
    for path, file in old.items():
        if path not in new or file.split != new[path].split:
            lines[path] = "is gone, or in another split"
        elif (
            file.size_bytes != new[path].size_bytes
            if is_remote(path)
            else file.sha256 != digest_of(Path(path))
        ):
            lines[path] = "content changed"
    base = f"{window.base.rstrip('/')}/"
    return [f"file {path.removeprefix(base)}: {lines[path]}" for path in sorted(lines)]
