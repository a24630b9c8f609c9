"""Base classes of requests: name a pipeline, its profile, overrides and workspace."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.project import activate
from sluice.workspace import Workspace, locate

if TYPE_CHECKING:
    from pipeline.config.config import Config


def next_command(*words: str, workspace_dir: str | None = None) -> str:
    """Returns a ``sluice`` command to copy, for the same program and workspace.

    Args:
      words: the verb and its arguments.
      workspace_dir: the ``--workspace`` option of the current command; None for
        ``SLUICE_WORKSPACE``.
    """
    given = workspace_dir or os.environ.get("SLUICE_WORKSPACE")
    place = ["--workspace", os.path.abspath(given)] if given else []
    return shlex.join([_program(), *words, *place])


def _program() -> str:
    called = Path(sys.argv[0])
    installed = called.name == "sluice" and called.parent != Path()
    return str(called) if installed else "sluice"


@dataclass(frozen=True, kw_only=True)
class WorkspaceRequest:
    """Request that names a pipeline and where its workspace is.

    Attributes:
      name: a config's name or path.
      workspace_dir: the folder that holds one workspace per pipeline; None for
        ``SLUICE_WORKSPACE``, or else ``workspace/`` of the project.
    """

    name: str
    workspace_dir: str | None = None

    def next_command(self, *words: str) -> str:
        """Returns a ``sluice`` command to copy, for the same workspace."""
        return next_command(*words, workspace_dir=self.workspace_dir)


@dataclass(frozen=True, kw_only=True)
class PipelineRequest(WorkspaceRequest):
    """Request that also says how the pipeline's config is loaded.

    Attributes:
      profile: an overlay of ``configs/profiles/``.
      overrides: ``KEY=VALUE``, as ``--set`` takes them.
    """

    profile: str | None = None
    overrides: tuple[str, ...] = ()

    def load_config(self) -> Config:
        """Returns the resolved config; raises ``UsageError`` if it is wrong."""
        from pipeline.config.load import load_config

        return load_config(self.name, profile=self.profile, overrides=self.overrides)

    def validated_config(self) -> Config:
        """Returns the config, validated with its schema and code.

        Raises:
          UsageError: there is no such config, or it is wrong.
        """
        from pipeline.graph.validate_graph import validate_pipeline

        config = self.load_config()
        activate(config.root)
        return validate_pipeline(config).config

    def workspace_of(self, config: Config) -> Workspace:
        """Returns the workspace of the config's pipeline."""
        return locate(config.root, config.name, self.workspace_dir)

    def serving_dir_of(self, config: Config) -> str:
        """Returns the serving directory, where versions of the model are pushed."""
        return config.serving_dir or str(self.workspace_of(config).serving)

    def published_in(self, config: Config) -> str:
        """Returns where versions are read: those of a service, if the config has one.

        That is ``<cloud.root>/<name>/serving``, unless ``push.serving_dir`` is remote.
        """
        if config.cloud is None or config.cloud.root is None:
            return self.serving_dir_of(config)
        from runners.cloud.cloud_locations import cloud_locations

        return str(cloud_locations(config).serving_dir)

    def same_config(self) -> list[str]:
        """Returns the options that load the same config in another command."""
        profile = ["--profile", self.profile] if self.profile else []
        return profile + [x for item in self.overrides for x in ("--set", item)]
