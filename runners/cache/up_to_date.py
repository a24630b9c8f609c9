"""Checks whether a pipeline is up to date with its last complete run, without TFX.

After a successful run its inputs are stored, with sizes and times of its outputs, the
served version, the baseline store, and ML Metadata's file, which every run changes. If
all of these are unchanged, a new run would do nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sluice.errors import WorkspaceError
from sluice.storage import atomic, digest
from sluice.storage.storage import is_remote
from sluice.workspace import Workspace

if TYPE_CHECKING:
    from runners.cache.run_inputs import RunInputs
    from sluice.record.run_record import RunRecord


def remember(workspace: Workspace, record: RunRecord, inputs: RunInputs) -> None:
    """Stores a run as the last complete one, if it is complete.

    Nothing is stored if an output is missing on this machine, such as a model that an
    engine has pushed to a bucket.
    """
    path = workspace.complete_file
    # A custom node without inputs, such as a second ExampleGen, may read other data.
    own_nodes = inputs.config.get("nodes", {}).values()
    if not _is_complete(record) or not all(node.get("inputs") for node in own_nodes):
        return
    try:
        made = _made(workspace, record)
    except OSError:
        return
    state = {
        "run_id": record.run_id,
        "command": record.command,
        "inputs": inputs.to_dict(),
        "made": made,
    }
    atomic.write_json(path, state)


def still_stands(workspace: Workspace, inputs: RunInputs) -> RunRecord | None:
    """Returns the last complete run if a new one would do nothing, else None."""
    record, state = _standing(workspace)
    return record if state.get("inputs") == inputs.to_dict() else None


@contextmanager
def kept(workspace: Workspace) -> Iterator[None]:
    """Keeps the last complete run valid while the block changes ML Metadata's file.

    For changes that no run depends on, such as those of ``sluice gc``.
    """
    record, state = _standing(workspace)
    yield
    if record is not None:
        made = _made(workspace, record)
        atomic.write_json(workspace.complete_file, {**state, "made": made})


def is_probably_up_to_date(workspace: Workspace, command: str) -> bool:
    """Whether the last complete run was started by the same command.

    The guess only decides whether TFX is imported while the inputs are read.
    """
    try:
        complete = json.loads(workspace.complete_file.read_text(encoding="utf-8"))
        return complete["command"] == command
    except (OSError, ValueError, KeyError, RecursionError):
        return False


def _standing(workspace: Workspace) -> tuple[RunRecord | None, dict[str, Any]]:
    """Returns the complete run whose outputs are unchanged, and its stored state."""
    # Imported here: ``is_probably_up_to_date`` must be fast and does not need it.
    from sluice.record.run_record import RunRecord

    try:
        text = workspace.complete_file.read_text(encoding="utf-8")
        state = json.loads(text)
        record = RunRecord.load(workspace.run_dir(state["run_id"]))
        if state["made"] == _made(workspace, record):
            return record, state
    except (OSError, ValueError, KeyError, TypeError, RecursionError, WorkspaceError):
        pass  # Missing or damaged: the run itself finds out what to do.
    return None, {}


def _is_complete(record: RunRecord) -> bool:
    served = all(push.state in ("pushed", "already_served") for push in record.pushes)
    return record.status in ("succeeded", "up_to_date") and served


def _made(workspace: Workspace, record: RunRecord) -> dict[str, Any]:
    """Returns the state of a run's outputs.

    Raises:
      OSError: an output is missing.
    """
    # Imported here: ``is_probably_up_to_date`` must be fast and does not need it.
    from serving.model_store import generations_of, store_at

    local = [uri for uri in record.artifacts if uri and not is_remote(uri)]
    push = record.pushes[0]
    newest = store_at(push.destination).newest()
    if newest is None or newest.digest is None or newest.uri != push.uri:
        raise FileNotFoundError(push.uri)
    return {
        "artifacts": {uri: _state_of_tree(Path(uri)) for uri in sorted(local)},
        "served": generations_of(newest.uri)
        if is_remote(newest.uri)
        else _state_of_tree(Path(newest.uri)),
        "accepted": _state_of_tree(workspace.root / "state" / "accepted"),
        "metadata": _state_of_file(workspace.metadata_db),
    }


def _state_of_tree(root: Path) -> str:
    """Returns a digest over names, sizes and modification times below a path."""
    if not root.exists():
        return "missing"
    paths = sorted(root.rglob("*")) if root.is_dir() else [root]
    lines = [
        f"{path.relative_to(root).as_posix()} {_state_of_file(path)}"
        for path in paths
        if not path.is_dir()
    ]
    return digest.of_bytes("\n".join(lines).encode())


def _state_of_file(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns]
