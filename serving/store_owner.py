"""Owner of a model store: the one pipeline that may push to it.

If two pipelines pushed to one directory, each push would replace the other's model.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sluice.errors import UsageError
from sluice.storage.storage import storage_for


@dataclass(frozen=True)
class Owner:
    """A pipeline, independent of the location of its files.

    Attributes:
      pipeline: its name.
      workspace_id: distinguishes pipelines of the same name; None if unknown.
    """

    pipeline: str
    workspace_id: str | None = None

    def is_same_as(self, other: Owner) -> bool:
        """Whether both have the same name, and no different workspace ids."""
        ids = {self.workspace_id, other.workspace_id} - {None}
        return self.pipeline == other.pipeline and len(ids) < 2

    def __str__(self) -> str:
        where = f" of the workspace {self.workspace_id}" if self.workspace_id else ""
        return f"the pipeline {self.pipeline!r}{where}"


def check_owner(file: str, publisher: Owner | None) -> None:
    """Raises if the store belongs to another pipeline than the publisher, if any.

    Raises:
      UsageError: the store has another owner.
      OSError: the file cannot be read.
    """
    owner = read_owner(file)
    if owner is None or (publisher and owner.is_same_as(publisher)):
        return
    raise UsageError(
        "this serving directory belongs to another pipeline",
        where=file.removesuffix("/.versions/owner.json"),
        expected=f"a push by {owner}, see {file}",
        actual=f"a push by {publisher or 'a publisher without a pipeline name'}",
        hint="give this pipeline a push.serving_dir of its own; or, for the next push "
        f"to take this one over, delete {file}",
    )


def claim(file: str, publisher: Owner | None, facts: dict[str, Any]) -> None:
    """Writes the owner file, if the publisher adds to what it says.

    Raises:
      UsageError: another publisher has claimed the store meanwhile.
    """
    owner, storage = read_owner(file), storage_for(file)
    if publisher is None or publisher == owner:
        return
    content = json.dumps({**asdict(publisher), "claimed_by": facts}, indent=2).encode()
    if owner is None:
        if not storage.write_if_absent(file, content):
            check_owner(file, publisher)
    elif publisher.workspace_id:
        storage.write_atomically(file, content)


def read_owner(file: str | Path) -> Owner | None:
    """Returns the owner of a store; None if it has none.

    Raises:
      OSError: it cannot be read.
    """
    file = str(file)
    try:
        known = json.loads(storage_for(file).read(file))
        return Owner(known["pipeline"], known["workspace_id"])
    except FileNotFoundError:
        return None
