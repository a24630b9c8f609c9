"""Owner of a model store: the one pipeline that may push to it.

If two pipelines pushed to one directory, each push would replace the other's model.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from serving.regular_files import read_file
from sluice.errors import UsageError
from sluice.storage import atomic


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
        workspace = (
            f" of the workspace {self.workspace_id}" if self.workspace_id else ""
        )
        return f"the pipeline {self.pipeline!r}{workspace}"


def check_owner(file: Path, publisher: Owner | None) -> None:
    """Raises if the store belongs to another pipeline.

    Args:
      file: the owner file of the store.
      publisher: None if it is no pipeline.

    Raises:
      UsageError: the store has another owner, or the file cannot be read.
    """
    owner = read_owner(file)
    if owner is None or (publisher and owner.is_same_as(publisher)):
        return
    raise UsageError(
        "this serving directory belongs to another pipeline",
        where=file.parent.parent,
        expected=f"a push by {owner}, see {file}",
        actual=f"a push by {publisher or 'a publisher without a pipeline name'}",
        hint="give this pipeline a push.serving_dir of its own; or, for the next push "
        f"to take this one over: rm {file}",
    )


def claim(file: Path, publisher: Owner | None, facts: dict[str, Any]) -> None:
    """Writes the owner file, if the publisher adds to what it says.

    Args:
      file: the owner file of the store.
      publisher: the checked publisher.
      facts: about the push, for information.
    """
    owner = read_owner(file)
    if publisher is None or (owner and not publisher.workspace_id):
        return
    if owner != publisher:
        atomic.write_json(file, {**asdict(publisher), "claimed_by": facts})


def read_owner(file: Path) -> Owner | None:
    """Returns the owner of a store; None if it has none.

    Raises:
      UsageError: the file is damaged, or a link.
    """
    try:
        known = json.loads(read_file(file))
        return Owner(known["pipeline"], known["workspace_id"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            "the owner file of this serving directory cannot be read",
            where=file,
            expected='JSON such as {"pipeline": "digits", "workspace_id": null}',
            actual=str(error),
            hint=f"for the next push to take the directory over: rm {file}",
        ) from error
