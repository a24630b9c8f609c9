"""Building and pushing an image, with a docker that writes down its calls."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from runners.cloud.image import LABEL, image_of
from runners.operations.image import ImageRequest, build, push, write_cloud_build
from sluice.errors import RemoteError, UsageError
from sluice.project import own_root

pytestmark = pytest.mark.unit

# Its images are files in $IMAGES, named by tag, that hold the labels.
DOCKER = """#!/bin/sh
echo "$*" >>"$IMAGES/calls"
case "$1 $2" in
    "version "*) ! [ -e "$IMAGES/stopped" ] || { echo "no daemon" >&2; exit 1; } ;;
    "image inspect")
        case "$4" in
            *RepoDigests*) echo "${5%%:*}@sha256:12" ;;
            *) cat "$IMAGES/${5##*:}" 2>/dev/null ;;
        esac ;;
    "build "*)
        [ -e "$IMAGES/broken" ] && exit 3
        test -f Dockerfile && test -d sluice || exit 4
        tag=${*##*--tag *:}
        echo '{"built": "here"}' >"$IMAGES/${tag% .}" ;;
esac
"""


@pytest.fixture
def images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("IMAGES", str(tmp_path))
    monkeypatch.chdir(own_root())
    return tmp_path


def calls(images: Path, verb: str) -> list[str]:
    lines = (images / "calls").read_text().splitlines()
    return [line for line in lines if line.split()[0] == verb]


def test_a_build_names_the_digests_of_its_bases(images: Path) -> None:
    request = ImageRequest(repository="eu/me", tfx="1.16")
    image = image_of(own_root(), "1.16")
    built = build(request)
    assert built.name == image.name("eu/me")
    assert built.labels == {"built": "here"}
    (line,) = calls(images, "build")
    assert "--build-arg BASE=python@sha256:12" in line
    assert "--build-arg BEAM=apache/beam_python3.10_sdk@sha256:12" in line
    assert "base.name=python:3.10-slim-bookworm" in line
    assert "base.digest=sha256:12" in line
    assert f"--label {LABEL}={image.fingerprint}" in line
    build(request)
    assert len(calls(images, "build")) == 1


def test_a_push_builds_what_is_not_built(images: Path) -> None:
    request = ImageRequest(repository="eu/me", tfx="1.16")
    pushed = push(request)
    assert calls(images, "push") == [f"push {pushed.name}"]
    push(request)
    assert len(calls(images, "build")) == 1


def test_a_push_needs_a_repository(images: Path) -> None:
    with pytest.raises(UsageError, match="pushed to a repository"):
        push(ImageRequest())


def test_a_machine_without_docker_is_sent_to_cloud_build(
    images: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (images / "stopped").touch()
    with pytest.raises(UsageError, match="docker cannot be used\nno daemon") as caught:
        build(ImageRequest())
    assert "sluice image --cloud-build" in str(caught.value.hint)
    monkeypatch.setenv("PATH", str(images / "nothing"))
    with pytest.raises(
        UsageError, match="there is no docker on this machine"
    ) as caught:
        build(ImageRequest())
    assert "sluice image --cloud-build" in str(caught.value.hint)


def test_a_build_that_fails(images: Path) -> None:
    (images / "broken").touch()
    with pytest.raises(RemoteError, match="docker build failed, with exit status 3"):
        build(ImageRequest())


def test_cloud_build_runs_the_same_script(images: Path) -> None:
    request = ImageRequest(repository="eu/me", tfx="1.16")
    file, text = write_cloud_build(request, str(images / "context"))
    config = json.loads(text)
    assert json.loads(file.read_text()) == config
    assert config["images"] == [image_of(own_root(), "1.16").name("eu/me")]
    (step,) = config["steps"]
    # As Cloud Build replaces them.
    command = [step["entrypoint"], *(item.replace("$$", "$") for item in step["args"])]
    subprocess.run(command, cwd=file.parent, check=True)
    (line,) = calls(images, "build")
    assert "--build-arg BASE=python@sha256:12" in line


def test_cloud_build_does_not_send_other_files(images: Path) -> None:
    with pytest.raises(UsageError, match="the directory is not empty"):
        write_cloud_build(ImageRequest(), str(images))


def test_cloud_build_needs_a_repository(images: Path) -> None:
    with pytest.raises(UsageError, match="pushed to a repository"):
        write_cloud_build(ImageRequest(tfx="1.16"), str(images / "context"))
    assert not (images / "context").exists()
