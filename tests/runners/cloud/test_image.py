"""What is in an image, its fingerprint, and the checks before a run is submitted."""

from __future__ import annotations

import re

import pytest

from pipeline.config.load import load_config
from runners.cloud.image import check_modules, image_of
from sluice.compat import child_environment
from sluice.errors import ConfigError
from sluice.project import OWN_PACKAGES, own_root

pytestmark = pytest.mark.unit


def write(root, *names):
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")


@pytest.fixture
def project(tmp_path):
    write(tmp_path, "my_models/__init__.py", "my_models/cnn.py", "features.py")
    return tmp_path


def test_an_image_holds_both_projects_packages_and_the_lock(project):
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


def test_the_fingerprint_is_that_of_code_and_lock(project):
    before = image_of(project, "1.16")
    write(project, "configs/b.yaml", "workspace/x", "my_models/__pycache__/a.pyc")
    image_of.cache_clear()
    assert image_of(project, "1.16").fingerprint == before.fingerprint
    (project / "my_models" / "cnn.py").write_text("UNITS = 8\n")
    image_of.cache_clear()
    after = image_of(project, "1.16")
    variants = [image_of(project, "1.16", gpu=True), image_of(project, "1.21")]
    assert len({item.fingerprint for item in (before, after, *variants)}) == 4
    assert re.fullmatch(r"eu/me:[0-9a-f]{16}", after.name("eu/me"))


def test_the_dockerfile_by_hand_is_that_of_tfx_1_16(project):
    assert (
        image_of(project, "1.16").dockerfile == (own_root() / "Dockerfile").read_text()
    )
    ignored = (own_root() / ".dockerignore").read_text().splitlines()
    assert {f"!{name}" for name in OWN_PACKAGES} < set(ignored)


def test_the_image_has_the_environment_of_local_runs(project, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    text = image_of(project, "1.16").dockerfile
    for name, value in child_environment().items():
        assert re.search(rf"^ENV .*\b{name}={value}\b", text, re.MULTILINE)


def test_code_that_is_in_no_image(project):
    write(project, "loose/deep.py", "configs/own.yaml")
    text = (own_root() / "configs" / "digits.yaml").read_text()
    text = re.sub(r"(?m)^model: .*", "model: loose.deep:build", text)
    (project / "configs" / "own.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"nodes: loose.deep\n.*loose/__init__.py"):
        check_modules(load_config("own", cwd=project))
