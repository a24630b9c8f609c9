"""Reads the progress that running nodes report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from sluice import progress

OnProgress = Callable[[str, dict[str, Any]], None]


def progress_file(run_dir: Path, node: str) -> Path:
    """Returns the file to which a node appends its progress."""
    return run_dir / "progress" / f"{node}.jsonl"


class FollowProgress:
    """Calls back with each new line of the progress files of some nodes."""

    def __init__(self, run_dir: Path, on_progress: OnProgress) -> None:
        self._run_dir = run_dir
        self._on_progress = on_progress
        self._offsets: dict[str, int] = {}

    def begin(self, node: str) -> None:
        """Follows a node, without the lines of earlier attempts."""
        path = progress_file(self._run_dir, node)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._offsets[node] = path.stat().st_size if path.exists() else 0

    def poll(self) -> None:
        """Reports the new lines of all nodes."""
        for node in list(self._offsets):
            self._poll(node)

    def end(self, node: str) -> None:
        """Reports a node's last lines and stops following it."""
        self._poll(node)
        self._offsets.pop(node, None)

    def _poll(self, node: str) -> None:
        path = progress_file(self._run_dir, node)
        lines, self._offsets[node] = progress.read(path, self._offsets.get(node, 0))
        for line in lines:
            self._on_progress(node, line)
