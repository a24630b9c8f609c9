"""Operation: deletes artifacts that no kept run and no served model needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runners.operations.complete_killed_runs import complete_killed_runs
from runners.operations.pipeline_request import PipelineRequest
from runners.retention.collect_garbage import collect_garbage
from runners.retention.find_garbage import Garbage


@dataclass(frozen=True, kw_only=True)
class GcRequest(PipelineRequest):
    """The runs to keep.

    Attributes:
      keep: the number of newest runs to keep, at least 1.
      dry_run: list what would be deleted; delete nothing.
      command: shown to other commands while this holds the lock.
    """

    keep: int = 5
    dry_run: bool = False
    command: str = "sluice gc"


@dataclass(frozen=True)
class Collected:
    """What was deleted, or would be."""

    pipeline: str
    dry_run: bool
    garbage: Garbage

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        items = self.garbage.items
        return {
            "schema_version": 1,
            "pipeline": self.pipeline,
            "dry_run": self.dry_run,
            "deleted": {kind: [x.name for x in found] for kind, found in items.items()},
            "closed_executions": list(self.garbage.close),
            "freed_bytes": self.garbage.freed_bytes,
            "kept_runs": list(self.garbage.kept_runs),
        }


def gc(request: GcRequest) -> Collected:
    """Deletes unneeded artifacts; see ``collect_garbage`` for the errors."""
    config = request.load_config()
    workspace = request.workspace_of(config)
    if not request.dry_run:
        # A journal that is deleted can no longer replace a damaged run.json.
        complete_killed_runs(workspace)
    garbage = collect_garbage(
        workspace,
        [request.serving_dir_of(config), workspace.serving],
        keep=request.keep,
        dry_run=request.dry_run,
        command=request.command,
    )
    return Collected(config.name, request.dry_run, garbage)
