"""``sluice image``: the image of a project's nodes, built and pushed."""

from __future__ import annotations

import shlex
from typing import Any

import click

from runners.cli.echo import echo, echo_json
from runners.cli.options import json_option
from runners.cloud.image import TFX_VERSIONS
from runners.operations import image as operation


@click.command()
@click.argument("action", required=False, type=click.Choice(["build", "push"]))
@click.option("prints", "--print", is_flag=True, help="Print the Dockerfile.")
@click.option(
    "--cloud-build",
    metavar="DIR",
    help="Write the build's files into DIR and print a config for Cloud Build.",
)
@click.option(
    "--repository", metavar="NAME", help="Where it is pushed to, without a tag."
)
@click.option("--tfx", type=click.Choice(TFX_VERSIONS), help="Default: the installed.")
@click.option("--gpu", is_flag=True, help="With CUDA.")
@json_option
def image(
    action: str | None,
    prints: bool,
    cloud_build: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Build or push the image of the project's nodes; by default, print its name.

    Its tag is the fingerprint of the code and the lock that are in it.
    """
    request = operation.ImageRequest(**asked)
    if sum((action is not None, prints, cloud_build is not None)) > 1:
        raise click.UsageError("give one of build, push, --print and --cloud-build")
    if cloud_build is not None:
        file, text = operation.write_cloud_build(request, cloud_build)
        echo(*text.rstrip("\n").split("\n"))
        command = ["gcloud", "builds", "submit", str(file.parent), f"--config={file}"]
        echo(f"next: {shlex.join(command)}", err=True)
        return
    if action is not None:
        done = (
            operation.build(request) if action == "build" else operation.push(request)
        )
    else:
        found = request.image()
        done = operation.ImageResult(request.name_of(found), found.fingerprint)
        if prints and as_json:
            echo_json({**done.to_dict(), "dockerfile": found.dockerfile})
            return
        if prints:
            echo(*found.dockerfile.rstrip("\n").split("\n"))
            return
    if as_json:
        echo_json(done.to_dict())
    else:
        echo(done.name)
