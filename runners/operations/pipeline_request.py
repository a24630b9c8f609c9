"""Names a pipeline: its config and its places, and commands to type next."""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.config.find import find_config
from sluice.errors import UsageError
from sluice.workspace import WORKSPACE_VARIABLE, Workspace, locate

if TYPE_CHECKING:
    from pipeline.config.config import Config


def next_command(*words: str) -> str:
    """Returns a ``sluice`` command to copy, for the same program and workspace."""
    given = os.environ.get(WORKSPACE_VARIABLE)
    place = ["--workspace", os.path.abspath(given)] if given else []
    return shlex.join([_program(), *words, *place])


def _program() -> str:
    called = Path(sys.argv[0])
    installed = called.name == "sluice" and called.parent != Path()
    return str(called) if installed else "sluice"


def config_words(config: Config) -> list[str]:
    """Returns NAME and the options that load the same config in another command."""
    origin, here = config.origin, Path.cwd()
    name = Path(origin.file).stem
    with suppress(UsageError):
        if find_config(name, here) != find_config(str(here / origin.file), here):
            name = origin.file
    profile = ["--profile", Path(origin.profile).stem] if origin.profile else []
    sets = [word for item in origin.overrides for word in ("--set", item)]
    return [name, *profile, *sets]


def workspace_of(config: Config) -> Workspace:
    """Returns the workspace of a config's pipeline."""
    return locate(config.root, config.name)


def serving_dir_of(config: Config) -> str:
    """Returns the serving directory, where versions of the model are pushed."""
    return config.serving_dir or str(workspace_of(config).serving)


def published_in(config: Config) -> str:
    """Returns where versions are read: those of a service, if the config has one.

    That is ``<cloud.root>/<name>/serving``, unless ``push.serving_dir`` is remote.
    """
    if config.cloud is None or config.cloud.root is None:
        return serving_dir_of(config)
    from runners.cloud.job_inputs import cloud_locations

    return str(cloud_locations(config).serving_dir)
