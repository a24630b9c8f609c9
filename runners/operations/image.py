"""Operations: builds and pushes the image of a project's nodes.

The build is a shell script, run here by Docker, or by Cloud Build for machines without
it. The base images are resolved to digests, which the image's labels record.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from runners.cloud.image import LABEL, REPOSITORY, Image, image_of
from sluice.errors import RemoteError, UsageError
from sluice.project import current_project
from sluice.storage.output_path import resolve_output_path

_CLOUD_BUILD = "cloudbuild.json"


@dataclass(frozen=True, kw_only=True)
class ImageRequest:
    """Request for an image of the project around the current directory.

    Attributes:
      repository: where it is pushed to, without a tag; None for a local name.
      tfx: the version of TFX; None for the installed one.
      gpu: whether CUDA is in it.
    """

    repository: str | None = None
    tfx: str | None = None
    gpu: bool = False

    def image(self) -> Image:
        """Returns the image, as it would be built now."""
        return image_of(current_project(Path.cwd()), self.tfx, self.gpu)

    def name_of(self, image: Image) -> str:
        """Returns the image's name, with its tag."""
        return image.name(self.repository or REPOSITORY)


@dataclass(frozen=True)
class ImageResult:
    """An image.

    Attributes:
      name: with its tag.
      fingerprint: of its code and lock.
      labels: of the image that Docker has, its bases' digests among them; None where
        it was not built here.
    """

    name: str
    fingerprint: str
    labels: dict[str, str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the JSON form."""
        return asdict(self)


def build(request: ImageRequest) -> ImageResult:
    """Builds the image by Docker, unless Docker has it.

    Raises:
      UsageError: there is no Docker, or nothing to build from.
      RemoteError: Docker failed.
    """
    image = request.image()
    name = request.name_of(image)
    _run("docker", "version", "--format", "{{.Server.Version}}")
    labels = _labels(name)
    if labels is None:
        with tempfile.TemporaryDirectory(prefix="sluice-image-") as context:
            image.write_context(Path(context))
            _stream("sh", "-ec", _script(image, name), directory=context)
        labels = _labels(name)
    return ImageResult(name, image.fingerprint, labels)


def push(request: ImageRequest) -> ImageResult:
    """Builds the image if needed, and pushes it.

    Raises:
      UsageError: there is no repository or no Docker.
      RemoteError: Docker failed.
    """
    _require_repository(request)
    built = build(request)
    _stream("docker", "push", built.name)
    return built


def write_cloud_build(request: ImageRequest, directory: str) -> tuple[Path, str]:
    """Writes the build's files and its Cloud Build config into a new directory.

    Returns:
      The config's file and its text.

    Raises:
      UsageError: there is no repository, or the directory is not empty or cannot be
        written.
    """
    target = resolve_output_path(directory, Path.cwd(), "--cloud-build")
    if target.exists() and any(target.iterdir()):
        raise UsageError(
            "the directory is not empty",
            where=target,
            expected="an empty or a new one: all of it is sent to Cloud Build",
        )
    _require_repository(request)
    image = request.image()
    name = request.name_of(image)
    # Cloud Build replaces $NAME by substitutions of its own.
    script = _script(image, name).replace("$", "$$")
    config = {
        "steps": [{"name": "docker", "entrypoint": "sh", "args": ["-ec", script]}],
        "images": [name],
        "timeout": "3600s",
        "options": {"machineType": "E2_HIGHCPU_8", "diskSizeGb": "100"},
    }
    text = json.dumps(config, indent=2) + "\n"
    image.write_context(target)
    file = target / _CLOUD_BUILD
    file.write_text(text, encoding="utf-8")
    return file, text


def _require_repository(request: ImageRequest) -> None:
    if request.repository is None:
        raise UsageError(
            "an image is pushed to a repository",
            expected="--repository, such as HOST/PROJECT/REPOSITORY/sluice",
        )


def _script(image: Image, name: str) -> str:
    """Returns the commands that build an image in its context's directory."""
    base, beam = (shlex.quote(image.arguments[key]) for key in ("BASE", "BEAM"))
    platform = "--platform linux/amd64"  # ml-metadata and tfx-bsl have no other wheels.
    digest = "docker image inspect --format '{{index .RepoDigests 0}}'"
    return f"""\
docker pull --quiet {platform} {base}
docker pull --quiet {platform} {beam}
base=$({digest} {base})
beam=$({digest} {beam})
docker build {platform} --build-arg BASE="$base" --build-arg BEAM="$beam" \\
  --label org.opencontainers.image.base.name={base} \\
  --label org.opencontainers.image.base.digest="${{base#*@}}" \\
  --label sluice.beam="$beam" --label {LABEL}={image.fingerprint} \\
  --tag {shlex.quote(name)} .
"""


def _labels(name: str) -> dict[str, str] | None:
    """Returns the labels of an image that Docker has, None if it has none."""
    done = subprocess.run(
        ["docker", "image", "inspect", "--format", "{{json .Config.Labels}}", name],
        capture_output=True,
        text=True,
    )
    return None if done.returncode else json.loads(done.stdout) or {}


def _run(*command: str) -> None:
    """Runs a quick command of Docker, whose output is shown only if it fails."""
    if shutil.which(command[0]) is None:
        raise UsageError(
            "there is no docker on this machine",
            hint="install Docker, or let Cloud Build do it: "
            "sluice image --cloud-build DIR --repository ...",
        )
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise UsageError(
            "docker cannot be used",
            details=done.stderr.strip().splitlines()[-3:],
            hint="start Docker, or let Cloud Build do it: "
            "sluice image --cloud-build DIR --repository ...",
        )


def _stream(*command: str, directory: str | None = None) -> None:
    """Runs a long command; all it prints goes to stderr, as it comes."""
    done = subprocess.run(command, cwd=directory, stdout=sys.stderr)
    if done.returncode:
        what = "build" if directory else "push"
        raise RemoteError(
            f"docker {what} failed, with exit status {done.returncode}",
            hint="see its messages above",
        )
