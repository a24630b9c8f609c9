"""``sluice image``: name and files of the image of a project's nodes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from runners.cli.echo import echo
from runners.cli.options import Result, verb
from runners.cloud.image import REPOSITORY, TFX_VERSIONS, image_of
from sluice.errors import UsageError
from sluice.project import current_project
from sluice.storage.output_path import resolve_output_path


@verb()
@click.option(
    "directory", "--write", metavar="DIR", help="Write the files of the build into DIR."
)
@click.option(
    "--repository", metavar="NAME", help="Where it is pushed to, without a tag."
)
@click.option("--tfx", type=click.Choice(TFX_VERSIONS), help="Default: the installed.")
@click.option("--gpu", is_flag=True, help="With CUDA.")
def command(
    directory: str | None,
    repository: str | None,
    tfx: str | None,
    gpu: bool,
) -> Result:
    """Print the name of the image of the project's nodes, and write its files.

    Its tag is the fingerprint of the code and the lock that are in it. 'docker build
    --platform linux/amd64 --tag NAME DIR' builds what --write has written.
    """
    image = image_of(current_project(Path.cwd()), tfx, gpu)
    name = image.name(repository or REPOSITORY)
    if directory is not None:
        target = resolve_output_path(directory, Path.cwd(), "--write")
        if target.exists():
            raise UsageError(
                "the directory exists; all of it would be sent", where=target
            )
        image.write_context(target)
    return Result({"name": name, "fingerprint": image.fingerprint}, partial(echo, name))
