"""What a run tells the processes of its nodes, by environment variables.

Executors are called by TFX, and some start processes of their own: neither takes an
argument of ours. In a container and in a test nothing is set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields


@dataclass(frozen=True, kw_only=True)
class NodeEnvironment:
    """The variables, ``SLUICE_`` and the attribute in capitals; None where unset.

    Attributes:
      spans: the file with the spans and files that the run has chosen.
      file_digests: the cache of the digests of files.
      source_files: the cache of the imports of Python sources.
      checkpoint_dir: where a training keeps its checkpoints, and resumes from.
      progress_file: to which the node appends its progress.
      workers: how many processes each data step has; unset: as many as are useful.
      training_file: in which the chief of a cluster describes its training for the
        workers, see ``pipeline.training.shared_training``.
      shared_paths: one per line, what the workers of an engine must see, too.
    """

    spans: str | None = None
    file_digests: str | None = None
    source_files: str | None = None
    checkpoint_dir: str | None = None
    progress_file: str | None = None
    workers: str | None = None
    training_file: str | None = None
    shared_paths: str | None = None

    def variables(self) -> dict[str, str]:
        """Returns the variables that are set."""
        return {_variable(name): value for name, value in vars(self).items() if value}


def node_environment() -> NodeEnvironment:
    """Returns what this process is told."""
    names = [item.name for item in fields(NodeEnvironment)]
    return NodeEnvironment(
        **{name: os.environ.get(_variable(name)) or None for name in names}
    )


def tell(**changes: str | None) -> None:
    """Changes what this process is told, and the processes that it starts."""
    for name, value in changes.items():
        if value is None:
            os.environ.pop(_variable(name), None)
        else:
            os.environ[_variable(name)] = value


def _variable(name: str) -> str:
    return f"SLUICE_{name.upper()}"
