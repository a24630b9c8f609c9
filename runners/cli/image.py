"""``sluice image``: the image of a project's nodes, built and pushed by Docker."""

from __future__ import annotations

import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Literal

import click

from runners.cli.echo import echo
from runners.cli.options import Result, verb
from runners.cloud.image import REPOSITORY, TFX_VERSIONS, image_of
from sluice.errors import RemoteError, UsageError
from sluice.project import current_project
from sluice.storage.output_path import resolve_output_path

# ml-metadata and tfx-bsl have no other wheels.
_PLATFORM = "linux/amd64"


@verb()
@click.argument("action", required=False, type=click.Choice(["build", "push"]))
@click.option(
    "directory", "--write", metavar="DIR", help="Write the files of the build into DIR."
)
@click.option(
    "--repository", metavar="NAME", help="Where it is pushed to, without a tag."
)
@click.option("--tfx", type=click.Choice(TFX_VERSIONS), help="Default: the installed.")
@click.option("--gpu", is_flag=True, help="With CUDA.")
def command(
    action: Literal["build", "push"] | None,
    directory: str | None,
    repository: str | None,
    tfx: str | None,
    gpu: bool,
) -> Result:
    """Build or push the image of the project's nodes, and print its name.

    Its tag is the fingerprint of the code and the lock that are in it.
    """
    if action == "push" and repository is None:
        raise click.UsageError("push needs --repository HOST/PROJECT/REPOSITORY/sluice")
    image = image_of(current_project(Path.cwd()), tfx, gpu)
    name = image.name(repository or REPOSITORY)
    if directory is not None:
        target = resolve_output_path(directory, Path.cwd(), "--write")
        if target.exists():
            raise UsageError(
                "the directory exists; all of it would be sent", where=target
            )
        image.write_context(target)
    if action is not None:
        with tempfile.TemporaryDirectory(prefix="sluice-image-") as context:
            image.write_context(Path(context))
            _docker("build", "--platform", _PLATFORM, "--tag", name, context)
    if action == "push":
        _docker("push", name)
    return Result({"name": name, "fingerprint": image.fingerprint}, partial(echo, name))


def _docker(*arguments: str) -> None:
    """Runs Docker, whose output goes to stderr."""
    try:
        subprocess.run(["docker", *arguments], stdout=2, check=True)
    except FileNotFoundError as error:
        raise UsageError(
            "there is no docker on this machine",
            hint="sluice image --write DIR, and gcloud builds submit DIR",
        ) from error
    except subprocess.CalledProcessError as error:
        raise RemoteError(
            f"docker {arguments[0]} failed, with exit status {error.returncode}"
        ) from error
