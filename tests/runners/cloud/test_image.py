"""What is in an image, its fingerprint, and the check before a run is submitted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pipeline.config.load import load_config
from runners.cloud.image import image_of, modules_outside, with_tag
from sluice.compat import child_environment
from sluice.errors import UsageError
from sluice.project import OWN_PACKAGES, own_root

pytestmark = pytest.mark.unit


def write(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path, "my_models/__init__.py", "my_models/cnn.py", "features.py")
    return tmp_path


def test_an_image_holds_both_projects_packages_and_the_lock(project: Path) -> None:
    write(project, "configs/a.yaml", "data/a.tfrecord", "tests/test_a.py", "setup.py")
    write(project, "my_models/.env", "my_models/key.pem", "my_models/credentials.json")
    write(project, "my_models/__pycache__/cnn.pyc", "my_models/words.txt")
    files = image_of(project, "1.16").files
    assert sorted(name for name in files if name.startswith("project/")) == [
        "project/features.py",
        "project/my_models/__init__.py",
        "project/my_models/cnn.py",
        "project/my_models/words.txt",
    ]
    others = {name.partition("/")[0] for name in files}
    assert others == {*OWN_PACKAGES, "requirements", "LICENSE", "project"}
    assert "reports/templates/run.html.j2" in files
    assert "requirements/tfx-1.16.txt" in files


def test_own_checkout_as_the_project_has_no_second_copy() -> None:
    files = image_of(own_root(), "1.16").files
    assert not [name for name in files if name.startswith(("project/", "tests/"))]
    assert "setup.py" not in files


def test_the_fingerprint_is_that_of_code_and_lock(project: Path) -> None:
    before = image_of(project, "1.16")
    write(project, "configs/b.yaml", "workspace/x", "my_models/__pycache__/a.pyc")
    assert image_of(project, "1.16").fingerprint == before.fingerprint
    (project / "my_models" / "cnn.py").write_text("UNITS = 8\n")
    after = image_of(project, "1.16")
    variants = [image_of(project, "1.16", gpu=True), image_of(project, "1.21")]
    assert len({item.fingerprint for item in (before, after, *variants)}) == 4
    assert re.fullmatch(r"eu/me:[0-9a-f]{16}", after.name("eu/me"))


def test_the_dockerfile_has_the_arguments_of_its_version(project: Path) -> None:
    image = image_of(project, "1.21", gpu=True)
    assert "\nARG BASE=python:3.12-slim-trixie\n" in image.dockerfile
    assert "\nARG TFX=1.21\nARG GPU=yes\n" in image.dockerfile
    assert "requirements/gpu-1.21.txt" in image.files
    beam = image.arguments["BEAM"].rpartition(":")[2]
    lock = (own_root() / "requirements" / "tfx-1.21.txt").read_text()
    assert f"\napache-beam=={beam} " in lock


def test_the_dockerfile_by_hand_is_that_of_tfx_1_16(project: Path) -> None:
    assert (
        image_of(project, "1.16").dockerfile == (own_root() / "Dockerfile").read_text()
    )
    ignored = (own_root() / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in OWN_PACKAGES} < set(ignored)


def test_the_image_has_the_environment_of_local_runs(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    text = image_of(project, "1.16").dockerfile
    for name, value in child_environment().items():
        assert re.search(rf"^ENV .*\b{name}={value}\b", text, re.MULTILINE)


def test_an_unknown_version_is_refused(project: Path) -> None:
    with pytest.raises(UsageError, match="no image for this version of TFX") as caught:
        image_of(project, "1.15")
    assert caught.value.expected == "one of 1.16, 1.21"


def test_a_tag_is_added_where_there_is_none(project: Path) -> None:
    tagged = image_of(project).name("localhost:5000/me")
    assert with_tag("localhost:5000/me", project) == tagged
    for whole in ("eu/me:latest", "eu/me@sha256:12"):
        assert with_tag(whole, project) == whole


def test_code_that_is_in_no_image(project: Path) -> None:
    write(project, "loose/deep.py", "configs/own.yaml")
    text = (own_root() / "configs" / "digits.yaml").read_text()
    text = re.sub(r"(?m)^model: .*", "model: loose.deep:build", text)
    (project / "configs" / "own.yaml").write_text(text)
    own = load_config("own", cwd=project)
    assert modules_outside(own, image_of(project)) == ["loose.deep"]
