"""The spans chosen for a run: chosen once, stored in its folder, pinned to files.

The run operation chooses first. The nodes and a resumed run ingest these files, and not
those delivered later. On other engines the node's driver chooses.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from components.tfrecord_gen.spans.file_lister import FileLister
from components.tfrecord_gen.spans.window import SourceFile, Window, with_state
from sluice.errors import DataError, SluiceError, WorkspaceError
from sluice.splits import SERVING
from sluice.storage import atomic

SPANS_FILE = "spans.json"
# The environment variable that tells the nodes of a run where its choice is stored.
SPANS_PATH = "SLUICE_SPANS"


@dataclass(frozen=True)
class SpanChoice:
    """The files of one run.

    Attributes:
      data: to train and evaluate on.
      serving: serving requests to compare with; None where the config has none.
    """

    data: Window
    serving: Window | None = None

    @property
    def windows(self) -> tuple[Window, ...]:
        """The data's window, and that of serving requests if there is one."""
        return (self.data,) if self.serving is None else (self.data, self.serving)

    def save(self, run_dir: Path) -> Path:
        """Writes the choice to the run's folder and returns where."""
        from pydantic import TypeAdapter

        path = run_dir / SPANS_FILE
        atomic.write_bytes(path, TypeAdapter(SpanChoice).dump_json(self, indent=2))
        return path

    def to_dict(self) -> dict[str, list[dict[str, Any]]]:
        """Returns the spans of each input, as a run's record has them."""
        windows = zip(("data", SERVING), self.windows, strict=False)
        return {name: [span.to_dict() for span in w.spans] for name, w in windows}

    def environment(self, run_dir: Path) -> dict[str, str]:
        """Returns the variable by which nodes find the choice that ``save`` wrote."""
        return {SPANS_PATH: str(run_dir / SPANS_FILE)}

    @classmethod
    def load(cls, run_dir: Path) -> SpanChoice | None:
        """Reads the choice of a run; None if it has none.

        Raises:
          WorkspaceError: the file is damaged.
        """
        from pydantic import TypeAdapter, ValidationError

        path = run_dir / SPANS_FILE
        try:
            return TypeAdapter(SpanChoice).validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except ValidationError as error:
            raise WorkspaceError(
                "the stored spans of the run are damaged",
                where=path,
                actual=str(error).splitlines()[0],
                hint="start a new run with `sluice run`",
            ) from error

    def restat(self) -> SpanChoice:
        """Returns the files with their current sizes and times, for a resumed run.

        The caller compares the contents, and finds deleted files.

        Raises:
          UsageError: a file cannot be read.
        """
        data, *serving = map(_restat, self.windows)
        return SpanChoice(data, *serving)


def chosen_window(base: str, patterns: Mapping[str | None, str]) -> Window | None:
    """Returns the window that this process's run chose for a node; None without one.

    Args:
      base: the data's directory or address.
      patterns: by split.
    """
    path = os.environ.get(SPANS_PATH)
    choice = SpanChoice.load(Path(path).parent) if path else None
    wanted = (FileLister(base).base, tuple(patterns.items()))
    for window in choice.windows if choice else ():
        if (window.base, window.patterns) == wanted:
            return window
    return None


def check_unchanged(window: Window) -> None:
    """Raises if a chosen file, or a manifest beside it, has changed since.

    Raises:
      DataError: one is gone, or has another size, time of modification or generation.
    """
    lister = FileLister(window.base)
    lines = []
    for file in (*window.files, *window.manifests):
        if file.size_bytes is None:
            continue
        try:
            now = lister.stat(window.relative(file))
        except SluiceError as error:
            lines.append(f"{file.path}: {error.actual or error.what}")
            continue
        if now.size_bytes != file.size_bytes:
            sizes = f"{file.size_bytes:,} bytes, now {now.size_bytes:,}"
            lines.append(f"{file.path}: {sizes}")
        elif with_state(file, now) != file:
            lines.append(f"{file.path}: rewritten since")
    if lines:
        raise changed(window, lines)


def changed(window: Window, lines: list[str]) -> DataError:
    """Returns the error for files that have changed since they were chosen."""
    return DataError(
        "data files have changed since the run chose them",
        where=window.base,
        examples=lines,
        hint="run again; set examples.complete_when if spans are still being written",
    )


def _restat(window: Window) -> Window:
    lister = FileLister(window.base)

    def restat(files: tuple[SourceFile, ...]) -> Iterator[SourceFile]:
        for file in files:
            name = window.relative(file)
            if lister.exists(name):
                file = with_state(file, lister.stat(name))
            yield file

    return replace(
        window,
        files=tuple(restat(window.files)),
        manifests=tuple(restat(window.manifests)),
    )
