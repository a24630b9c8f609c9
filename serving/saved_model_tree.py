"""Files of a SavedModel on disk, and a durable copy of them.

Only names, bytes and file types are checked, not whether TensorFlow can load the model.
Special files and links to directories, which the digest does not cover, are rejected.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from sluice.errors import ServingError
from sluice.storage import atomic, digest

MODEL_FILES = ("saved_model.pb", "saved_model.pbtxt")
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class SavedModelTree:
    """A SavedModel on a local file system.

    Attributes:
      root: its directory.
      directories: below the root and relative to it, parents first.
      files: relative to the root; links to files are followed.
      digest: ``digest.of_tree`` of the root when it was read.
    """

    root: Path
    directories: tuple[Path, ...]
    files: tuple[Path, ...]
    digest: str

    @classmethod
    def read(cls, root: str | Path) -> SavedModelTree:
        """Lists a SavedModel and computes its digest.

        Raises:
          ServingError: it is no SavedModel, cannot be read, or has special files.
        """
        root = Path(root)
        try:
            directories, files, strange = _list(root)
            sizes = {
                name: os.stat(root / name).st_size
                for name in MODEL_FILES
                if Path(name) in files
            }
            if not any(sizes.values()):
                raise ServingError(
                    "this is not a SavedModel; nothing was pushed",
                    where=root,
                    expected=f"{' or '.join(MODEL_FILES)}, with content",
                    actual=f"an empty {next(iter(sizes))}"
                    if sizes
                    else f"{len(files)} other files",
                )
            if strange:
                raise ServingError(
                    "the model contains special files; nothing was pushed",
                    where=root,
                    expected="regular files and directories",
                    examples=[str(path) for path in strange],
                    hint="replace links to directories and special files with "
                    "regular files",
                )
            return cls(root, tuple(directories), tuple(files), digest.of_tree(root))
        except OSError as error:
            raise ServingError(
                f"the model cannot be read ({error.strerror}); nothing was pushed",
                where=root,
                actual=str(error),
            ) from error

    def copy_to(self, target: Path) -> None:
        """Copies to a new directory, readable by all users, and flushes it to the disk.

        Raises:
          OSError: the target exists or cannot be written, the disk is full, or a source
            file is gone.
          ServingError: the source changed since it was read.
        """
        target.mkdir()
        for directory in self.directories:
            (target / directory).mkdir()
        for file in self.files:
            _copy_file(self.root / file, target / file)
        for directory in (target, *(target / path for path in self.directories)):
            # A server may run as another user, whatever the umask.
            directory.chmod(0o755)
            atomic.sync_directory(directory)
        self.check_copied(digest.of_tree(target))

    def check_copied(self, copied: str) -> None:
        """Raises if a copy has another digest.

        Raises:
          ServingError: the source changed since it was read.
        """
        if copied != self.digest:
            raise ServingError(
                "the model changed while it was being copied; nothing was pushed",
                where=self.root,
                hint="wait until it has been written, then push again",
            )


def _list(root: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Returns directories, files and special files, relative to the root."""
    directories: list[Path] = []
    files: list[Path] = []
    strange: list[Path] = []
    for parent, directory_names, file_names in os.walk(root, onerror=_raise):
        below = Path(parent).relative_to(root)
        for name in sorted(directory_names):
            linked = Path(parent, name).is_symlink()
            (strange if linked else directories).append(below / name)
        for name in sorted(file_names):
            readable = Path(parent, name).is_file()
            (files if readable else strange).append(below / name)
    return directories, files, strange


def _raise(error: OSError) -> None:
    raise error


def _copy_file(source: Path, target: Path) -> None:
    with open(source, "rb") as reader, open(target, "xb") as writer:
        shutil.copyfileobj(reader, writer, _CHUNK_BYTES)
        os.fchmod(writer.fileno(), 0o644)
        writer.flush()
        os.fsync(writer.fileno())
