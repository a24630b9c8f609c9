"""What is in an image, its fingerprint, and the checks before a run is submitted."""

from __future__ import annotations

import re

import pytest
import requests

from pipeline.config.load import load_config
from runners.cloud import image
from runners.cloud.image import check_images, check_modules, image_of
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


def config_of(image, *overrides):
    root = "cloud={engine: vertex, root: gs://bucket/root}"
    given = (root, f"cloud.image={image}", *overrides)
    return load_config("digits", cwd=own_root(), overrides=given)


@pytest.fixture
def registry(monkeypatch):
    """Requests to registries, which have no image with "missing" in its name."""
    asked = []

    def send(self, request, **options):
        asked.append(request)
        if "down" in request.url:
            raise requests.ConnectionError
        answer = requests.Response()
        answer.status_code = 404 if "missing" in request.url else 403
        return answer

    monkeypatch.setattr(requests.Session, "send", send)
    google = requests.Session()
    google.headers["Authorization"] = "Bearer planted"
    monkeypatch.setattr(image, "_authorized_session", lambda: google)
    return asked


def test_every_image_of_a_run_is_looked_for(registry):
    """Found: of a GPU's, a node's own and Dataflow's images nothing was known."""
    gpu = "accelerator: {type: NVIDIA_TESLA_T4}"
    other = "image: 'gcr.io/missing:v1'"
    for override in (
        f"cloud.nodes.Trainer={{{other}}}",
        f"cloud.nodes.Trainer={{{gpu}, {other}}}",
        f"cloud.nodes.default={{{other}}}",
        f"cloud.beam={{runner: dataflow, {other}}}",
    ):
        with pytest.raises(ConfigError, match="no such image") as caught:
            check_images(config_of("gcr.io/me", override))
        assert caught.value.where == "gcr.io/missing:v1"
    assert {request.method for request in registry} == {"HEAD"}
    check_images(config_of("gcr.io/me", f"cloud.beam={{{other}}}"))
    check_images(config_of("gcr.io/down"))
    check_images(config_of("sluice:local"))
    with pytest.raises(ConfigError) as caught:
        given = f"cloud.nodes.Trainer={{{gpu}, image: gcr.io/missing}}"
        check_images(config_of("gcr.io/me", given))
    assert str(caught.value.hint).startswith(
        "sluice image push --repository gcr.io/missing, with --gpu"
    )


def test_google_s_registries_alone_are_asked_with_google_s_token(registry):
    """Found: the registry of any image got it, also those of others."""
    for name, is_google in {
        "europe-west4-docker.pkg.dev/p/r/one": True,
        "eu.gcr.io/p/one": True,
        "gcr.io/p/one:v1@sha256:12": True,
        "ghcr.io/me/one": False,
        "notgcr.io/me/one": False,
        "gcr.io.example.com/me/one": False,
        "localhost:5000/p/r/one": False,
    }.items():
        registry.clear()
        check_images(config_of(name))
        assert bool(registry) == is_google, name
