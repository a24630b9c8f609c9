"""Copies a file under a name that is its content's digest.

TFX's cache looks at the path of a file and never into it. With the digest in the path
an edited file is another file, and a file that was touched or moved is the same one.
"""

from __future__ import annotations

from pathlib import Path

from sluice.storage import atomic, digest


def store_input(path: Path, inputs_dir: Path, kind: str) -> Path:
    """Returns ``<inputs_dir>/<kind>/<sha256>/<file name>``, written if not there yet.

    Raises:
      OSError: the file cannot be read, or the directory cannot be written.
    """
    data = path.read_bytes()
    target = inputs_dir / kind / digest.of_bytes(data) / path.name
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(target, data)
    return target
