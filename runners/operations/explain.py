"""Operation: whether a node would run, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from components.tfrecord_gen.input_files import SPANS_FILE
from pipeline.checks.before_run import check_before_run
from pipeline.config.config import Config
from pipeline.config.serialize import write_stored_config
from pipeline.graph.choose_spans import choose_spans
from runners.engine import Graph
from runners.local import processes
from runners.metadata.metadata_file import copy_metadata
from runners.operations.find_run import workspace_of
from sluice.errors import UsageError
from sluice.node_environment import NodeEnvironment


def explain_node(config: Config, node: str) -> list[dict[str, Any]]:
    """Returns whether a node and those upstream of it would run, and why.

    A process that imports TFX finds it. Each entry has ``node``, ``would_run``,
    ``because``, ``waits_for`` and ``last_run``.

    Raises:
      UsageError: the config or its data is invalid, or there is no such node.
      WorkspaceError: the metadata is damaged.
      NodeError: the process failed otherwise.
    """
    config = check_before_run(config, asked=[node])
    if config.cloud is not None:
        raise UsageError(
            "a service decides by itself what it caches", hint="without --profile"
        )
    choice, workspace = choose_spans(config), workspace_of(config)
    with processes.temporary_folder() as folder:
        run_dir = Path(folder, "explain")
        run_dir.mkdir()
        write_stored_config(config, run_dir / "config.json")
        (run_dir / SPANS_FILE).write_bytes(choice.to_json())
        if workspace.metadata_db.exists():
            copy_metadata(workspace.metadata_db, run_dir / "metadata.db")
        told = NodeEnvironment(
            spans=str(run_dir / SPANS_FILE), file_digests=str(workspace.digests_file)
        )
        return processes.call(
            "runners.local.explain_job:explain",
            Graph(run_dir, config.root, workspace.root),
            node,
            log=run_dir / "explain.log",
            around=processes.Surroundings(config.root, Path(folder), told),
        )
