"""Recorded contents of an artifact, and whether they still match.

Names and sizes of all files are compared, without reading them; of a SavedModel, the
content is compared too. The record is a custom property of the artifact in ML Metadata.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sluice.storage import digest
from sluice.storage.storage import storage_for

PROPERTY = "sluice_files"


@dataclass(frozen=True)
class Damage:
    """Difference between the recorded and the current contents of an artifact."""

    expected: str
    actual: str

    def __str__(self) -> str:
        return f"held {self.expected}, now {self.actual}"


@dataclass(frozen=True)
class Contents:
    """The files of an artifact, without hidden ones.

    Attributes:
      digest: of the list of relative names and sizes.
      model_dir: relative directory of the SavedModel; None if there is none.
      model_digest: ``digest.of_tree`` of that directory.
    """

    files: int
    bytes: int
    digest: str
    model_dir: str | None = None
    model_digest: str | None = None

    @classmethod
    def read(cls, uri: str, model_dir: str | None = None) -> Contents | None:
        """Returns the current contents; None if the artifact does not exist.

        Raises:
          OSError: it cannot be read.
        """
        storage = storage_for(uri)
        try:
            root = storage.stat(uri)
        except (FileNotFoundError, NotADirectoryError):
            return None
        entries = [(".", root.size_bytes)]
        if root.kind == "folder":
            entries = [
                (entry.name, entry.size_bytes)
                for entry in digest.files_below(uri)
                if not _is_hidden(entry.name)
            ]
        model = None if model_dir is None else os.path.join(uri, model_dir)
        is_model = model is not None and bool(storage.list(model))
        return cls(
            files=len(entries),
            bytes=sum(size for _, size in entries),
            digest=digest.of_bytes(json.dumps(entries).encode()),
            model_dir=model_dir if is_model else None,
            model_digest=digest.of_tree(str(model)) if is_model else None,
        )

    @classmethod
    def recorded(cls, properties: Mapping[str, Any]) -> Contents | None:
        """Returns the record in an artifact's properties; None if there is none."""
        text = properties.get(PROPERTY)
        return cls(**json.loads(text)) if text else None

    def to_json(self) -> str:
        """Returns the value of the custom property."""
        return json.dumps({k: v for k, v in asdict(self).items() if v is not None})

    def damage(self, uri: str) -> Damage | None:
        """Returns how the current contents differ; None if they do not."""
        size = self._size()
        try:
            now = Contents.read(uri, self.model_dir)
        except OSError as error:
            return Damage(size, f"unreadable: {error}")
        if now is None:
            return Damage(size, "nothing is there")
        if now.digest != self.digest:
            same = "as many, of other names or sizes" if now._size() == size else None
            return Damage(size, same or now._size())
        if now.model_digest != self.model_digest:
            return Damage(
                f"a model of SHA-256 {self.model_digest}", f"{now.model_digest}"
            )
        return None

    def _size(self) -> str:
        return f"{self.files} file{'' if self.files == 1 else 's'} ({self.bytes} bytes)"


def _is_hidden(name: str) -> bool:
    return any(part.startswith(".") for part in name.split("/"))
