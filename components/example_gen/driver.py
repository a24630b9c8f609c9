"""Fingerprints the input files by content, so that the cache sees what changed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tfx.components.example_gen import driver, utils

from components.example_gen.input_files import input_files
from sluice import digest
from sluice.file_digests import MEMORY_FILE, FileDigests


class Driver(driver.FileBasedDriver):
    """Driver of ``ImportExampleGen`` on local files.

    TFX's fingerprint is made of counts, sizes and modification times in seconds: a
    touched file is imported and trained on again, one replaced by ``cp -p`` is not.
    """

    def resolve_exec_properties(
        self, exec_properties: dict[str, Any], *arguments: Any, **options: Any
    ) -> dict[str, Any]:
        resolved = super().resolve_exec_properties(
            exec_properties, *arguments, **options
        )
        files = input_files(resolved)
        if not any("://" in path for path in files):
            resolved[utils.FINGERPRINT_PROPERTY_NAME] = content_fingerprint(files)
        return resolved


def content_fingerprint(files: list[str]) -> str:
    """Returns a digest over the names and contents of files.

    Every byte is read, but for files that the runner has read before and that have not
    changed since; see ``sluice.file_digests``.
    """
    memory = os.environ.get(MEMORY_FILE)
    of = FileDigests(Path(memory)).of if memory else digest.of_file
    lines = [[Path(path).name, of(Path(path))] for path in files]
    return "sha256:" + digest.of_bytes(json.dumps(lines).encode())
