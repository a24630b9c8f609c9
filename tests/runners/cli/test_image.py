"""``sluice image`` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runners.cli.main import main
from runners.cloud.image import image_of
from sluice.project import own_root

pytestmark = pytest.mark.unit


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.chdir(own_root())

    def typed(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["image", *arguments])
        out, err = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, out, err

    return typed


def test_the_name_of_the_image(typed) -> None:
    image = image_of(own_root(), "1.21", gpu=True)
    options = ("--repository", "eu/me", "--tfx", "1.21", "--gpu")
    assert typed(*options) == (0, f"{image.name('eu/me')}\n", "")
    _, out, _ = typed(*options, "--json")
    assert json.loads(out) == {
        "name": image.name("eu/me"),
        "fingerprint": image.fingerprint,
        "labels": None,
    }


def test_the_dockerfile_and_the_config_of_cloud_build(typed, tmp_path: Path) -> None:
    image = image_of(own_root(), "1.16")
    assert typed("--print", "--tfx", "1.16") == (0, image.dockerfile, "")
    _, out, _ = typed("--print", "--tfx", "1.16", "--json")
    assert json.loads(out)["dockerfile"] == image.dockerfile
    folder = tmp_path / "context"
    code, out, err = typed(
        *(
            "--cloud-build",
            str(folder),
            "--tfx",
            "1.16",
            "--repository",
            "host/r/sluice",
        )
    )
    assert (code, json.loads(out)["images"]) == (0, [image.name("host/r/sluice")])
    command = f"gcloud builds submit {folder} --config={folder}/cloudbuild.json"
    assert err == f"next: {command}\n"


def test_one_thing_at_a_time(typed) -> None:
    code, _, err = typed("build", "--print")
    assert code == 2
    assert "give one of build, push, --print and --cloud-build" in err
