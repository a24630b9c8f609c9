"""``sluice image``: the image of a project's nodes, built and pushed by Docker."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Literal

import click

from runners.cli.echo import echo
from runners.cli.options import Result, verb
from runners.cloud.image import REPOSITORY, TFX_VERSIONS, Image, image_of
from sluice.errors import RemoteError, UsageError
from sluice.project import current_project
from sluice.storage.output_path import resolve_output_path

# ml-metadata and tfx-bsl have no other wheels.
_PLATFORM = "linux/amd64"


@verb()
@click.argument("action", required=False, type=click.Choice(["build", "push"]))
@click.option("prints", "--print", is_flag=True, help="Print the Dockerfile.")
@click.option(
    "--cloud-build",
    metavar="DIR",
    help="Write the build's files into DIR and print the command for Cloud Build.",
)
@click.option(
    "--repository", metavar="NAME", help="Where it is pushed to, without a tag."
)
@click.option("--tfx", type=click.Choice(TFX_VERSIONS), help="Default: the installed.")
@click.option("--gpu", is_flag=True, help="With CUDA.")
def image(
    action: Literal["build", "push"] | None,
    prints: bool,
    cloud_build: str | None,
    repository: str | None,
    tfx: str | None,
    gpu: bool,
) -> Result:
    """Build or push the image of the project's nodes; by default, print its name.

    Its tag is the fingerprint of the code and the lock that are in it.
    """
    if sum((action is not None, prints, cloud_build is not None)) > 1:
        raise click.UsageError("give one of build, push, --print and --cloud-build")
    if repository is None and (action == "push" or cloud_build is not None):
        raise UsageError(
            "an image is pushed to --repository, HOST/PROJECT/REPOSITORY/sluice"
        )
    found = image_of(current_project(Path.cwd()), tfx, gpu)
    name = found.name(repository or REPOSITORY)
    facts = {"name": name, "fingerprint": found.fingerprint}
    lines = [name]
    if prints:
        facts["dockerfile"] = found.dockerfile
        lines = found.dockerfile.rstrip("\n").split("\n")
    elif cloud_build is not None:
        lines = [_write_context(found, name, cloud_build)]
    elif action is not None:
        with tempfile.TemporaryDirectory(prefix="sluice-image-") as context:
            found.write_context(Path(context))
            _docker("build", "--platform", _PLATFORM, "--tag", name, context)
        if action == "push":
            _docker("push", name)
    return Result(facts, partial(echo, *lines))


def _write_context(found: Image, name: str, directory: str) -> str:
    """Writes the build's files; returns the command by which Cloud Build takes them."""
    target = resolve_output_path(directory, Path.cwd(), "--cloud-build")
    if target.exists() and any(target.iterdir()):
        raise UsageError(
            "the directory is not empty, and all of it is sent to Cloud Build",
            where=target,
        )
    found.write_context(target)
    options = "--timeout=3600 --machine-type=e2-highcpu-8 --disk-size=100"
    return f"gcloud builds submit {shlex.quote(str(target))} --tag={name} {options}"


def _docker(*arguments: str) -> None:
    """Runs Docker, whose output goes to stderr."""
    if shutil.which("docker") is None:
        raise UsageError(
            "there is no docker on this machine",
            hint="install Docker, or let Cloud Build do it: "
            "sluice image --cloud-build DIR --repository ...",
        )
    done = subprocess.run(["docker", *arguments], stdout=2)
    if done.returncode:
        raise RemoteError(
            f"docker {arguments[0]} failed, with exit status {done.returncode}",
        )
