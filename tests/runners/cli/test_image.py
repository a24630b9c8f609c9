"""``sluice image`` as it is typed, with a docker that writes down its calls."""

from __future__ import annotations

import json

import pytest

from runners.cloud.image import image_of
from sluice.project import own_root

pytestmark = pytest.mark.unit

DOCKER = """#!/bin/sh
echo "$*" >>"$IMAGES/calls"
[ "$1" = push ] || { cd "$6" && test -f Dockerfile && test -d sluice; }
"""
OPTIONS = ("--repository", "eu/me", "--tfx", "1.21", "--gpu")


@pytest.fixture
def docker(tmp_path, monkeypatch):
    (tmp_path / "docker").write_text(DOCKER)
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("IMAGES", str(tmp_path))
    monkeypatch.chdir(own_root())
    return tmp_path


def test_build_and_push(docker, sluice):
    name = image_of(own_root(), "1.21", gpu=True).name("eu/me")
    assert sluice("image", "push", *OPTIONS)[:2] == (0, f"{name}\n")
    build, push = (docker / "calls").read_text().splitlines()
    assert build.startswith(f"build --platform linux/amd64 --tag {name} ")
    assert push == f"push {name}"


def test_the_files_of_the_build(docker, sluice):
    found = image_of(own_root(), "1.21", gpu=True)
    code, out, _ = sluice("image", "--write", str(docker / "c"), *OPTIONS)
    assert (code, out) == (0, f"{found.name('eu/me')}\n")
    assert (docker / "c" / "Dockerfile").read_text() == found.dockerfile
    assert (docker / "c" / "sluice").is_dir()
    code, _, err = sluice("image", "--write", str(docker / "c"), *OPTIONS)
    assert code == 2 and "the directory exists" in err
    assert json.loads(sluice("image", *OPTIONS, "--json")[1]) == {
        "schema_version": 1,
        "name": found.name("eu/me"),
        "fingerprint": found.fingerprint,
    }


def test_a_push_needs_a_repository(docker, sluice):
    code, _, err = sluice("image", "push")
    assert code == 2 and "push needs --repository" in err


def test_a_docker_that_fails_or_is_missing(docker, sluice, monkeypatch):
    (docker / "docker").write_text("#!/bin/sh\nexit 3\n")
    code, _, err = sluice("image", "build")
    assert code == 8 and "docker build failed, with exit status 3" in err
    monkeypatch.setenv("PATH", str(docker / "nothing"))
    code, _, err = sluice("image", "build")
    assert code == 2 and "sluice image --write DIR" in err
