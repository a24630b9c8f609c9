"""Images in their registry: their labels, and the check before a run."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests

from pipeline.config.config import Config
from pipeline.config.load import load_config
from runners.cloud import registry
from runners.cloud.image import LABEL, image_of
from runners.cloud.registry import (
    check_images,
    check_unchanged_images,
    find_image,
)
from sluice.errors import ConfigError, RemoteError
from sluice.project import own_root

pytestmark = pytest.mark.cloud

MANIFEST = {"config": {"digest": "sha256:c"}}
INDEX = {
    "manifests": [
        {"digest": "sha256:a", "platform": {"architecture": "arm64"}},
        {"digest": "sha256:m", "platform": {"architecture": "amd64"}},
    ]
}


def labelled(label: str) -> dict[str, Any]:
    return {"config": {"Labels": {LABEL: label, "other": "x"}}}


PAGES = {
    "/v2/p/r/one/manifests/latest": MANIFEST,
    "/v2/p/r/one/blobs/sha256:c": labelled("0123"),
    "/v2/p/r/many/manifests/v1": INDEX,
    "/v2/p/r/many/manifests/sha256:m": MANIFEST,
    "/v2/p/r/many/blobs/sha256:c": labelled("0123"),
    "/v2/p/r/arm/manifests/v1": {"manifests": INDEX["manifests"][:1]},
    "/v2/p/bare/manifests/sha256:m": MANIFEST,
    "/v2/p/bare/blobs/sha256:c": {"config": {"Labels": None}},
}


class Registry(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        page = PAGES.get(self.path)
        status = 403 if "/secret/" in self.path else 404 if page is None else 200
        if "manifests" in self.path and "oci.image.index" not in self.headers["Accept"]:
            status = 406
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(page).encode())

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def host() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def session() -> requests.Session:
    found = requests.Session()
    found.trust_env = False
    return found


@pytest.fixture
def own_pages(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Pages that the test may change."""
    pages = dict(PAGES)
    monkeypatch.setitem(globals(), "PAGES", pages)
    return pages


@pytest.mark.parametrize(
    ("image", "label"),
    [("p/r/one", "0123"), ("p/r/many:v1", "0123"), ("p/bare:v2@sha256:m", None)],
)
def test_the_label_of_an_image(
    host: str, session: requests.Session, image: str, label: str | None
) -> None:
    found = find_image(f"{host}/{image}", session)
    assert found is not None and found.label == label
    manifest = INDEX if "many" in image else MANIFEST
    digest = hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
    assert found.digest == f"sha256:{digest}"


def test_an_image_that_may_not_be_read_from_here(
    host: str,
    session: requests.Session,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert find_image("sluice:0123") is None
    assert find_image(f"{host}/secret/one:v1", session) is None
    # Without credentials, as on a machine that knows only a cluster.
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    assert find_image("gcr.io/p/one") is None


def test_an_image_for_other_processors_only(
    host: str, session: requests.Session
) -> None:
    with pytest.raises(RemoteError, match="cannot be asked"):
        find_image(f"{host}/p/r/arm:v1", session)


def config_of(image: str, *overrides: str) -> Config:
    root = "cloud={engine: vertex, root: gs://bucket/root}"
    given = (root, f"cloud.image={image}", *overrides)
    return load_config("digits", cwd=own_root(), overrides=given)


def test_an_image_is_known_by_its_label_or_its_tag(
    host: str, session: requests.Session, own_pages: dict[str, Any]
) -> None:
    cpu, gpu = image_of(own_root()), image_of(own_root(), gpu=True)
    own_pages["/v2/p/r/one/blobs/sha256:c"] = labelled(gpu.fingerprint)
    image, warnings = f"{host}/p/r/one:latest", list[str]()
    digests = check_images(config_of(image), warnings.append, session)
    assert list(digests) == [image] and digests[image].startswith("sha256:")
    for unread in (cpu.name(f"{host}/secret/one"), gpu.name("eu/me"), "eu/me"):
        assert check_images(config_of(unread), warnings.append, session) == {}
    assert warnings == []


def test_every_image_of_a_run_is_checked(
    host: str, session: requests.Session, own_pages: dict[str, Any]
) -> None:
    """Found: of a GPU's, a node's own and Dataflow's images nothing was known."""
    own_pages["/v2/p/r/one/blobs/sha256:c"] = labelled(image_of(own_root()).fingerprint)
    good = f"{host}/p/r/one:latest"
    gpu = "cloud.nodes.Trainer={accelerator: {type: NVIDIA_TESLA_T4}"
    other = f"image: '{host}/p/r/many:v1'"
    for override, actual in {
        f"cloud.nodes.Trainer={{{other}}}": "the label 0123",
        f"{gpu}, {other}}}": "the label 0123",
        f"cloud.nodes.default={{{other}}}": "the label 0123",
        f"cloud.beam={{runner: dataflow, {other}}}": "the label 0123",
        "cloud.nodes.Trainer={image: 'eu/me:latest'}": f"no label {LABEL}",
    }.items():
        with pytest.raises(ConfigError, match="does not hold the code") as caught:
            check_images(config_of(good, override), print, session)
        assert actual in str(caught.value.actual), override
    found = config_of(good, f"cloud.beam={{{other}}}")
    assert list(check_images(found, print, session)) == [good]
    # Without a tag it is the one for GPUs, which is not there.
    with pytest.raises(ConfigError, match="no such image") as caught:
        override = f"{gpu}, image: '{host}/p/r/one'}}"
        check_images(config_of(good, override), print, session)
    command = f"sluice image push --repository {host}/p/r/one --gpu"
    assert caught.value.hint == command


def test_a_registry_that_does_not_answer(session: requests.Session) -> None:
    warnings: list[str] = []
    config = config_of("127.0.0.1:9/p/r:v1")
    assert check_images(config, warnings.append, session) == {}
    assert warnings == [
        "it is not known whether 127.0.0.1:9/p/r:v1 holds the code about to run: the "
        "image's registry cannot be asked"
    ]


def test_google_s_token_is_sent_to_google_s_registries_only(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: the registry of any image got it, also those of others."""
    authorized = requests.Session()
    authorized.headers["Authorization"] = "Bearer planted"
    asked: list[dict[str, str]] = []

    def send(self: requests.Session, request: Any, **options: Any) -> Any:
        asked.append({"url": request.url, **request.headers})
        raise requests.ConnectionError

    monkeypatch.setattr(requests.Session, "send", send)
    monkeypatch.setattr(registry, "_authorized_session", lambda: authorized)
    for image in (
        "europe-west4-docker.pkg.dev/p/r/one",
        "eu.gcr.io/p/one",
        "gcr.io/p/one",
        "ghcr.io/me/one",
        "notgcr.io/me/one",
        "gcr.io.example.com/me/one",
        f"{host}/p/r/one",
    ):
        with pytest.raises(RemoteError, match="cannot be asked"):
            find_image(image)
    assert ["Authorization" in request for request in asked] == [True] * 3 + [False] * 4


def test_a_tag_that_is_another_image_now(
    host: str,
    session: requests.Session,
    own_pages: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "_session_of", lambda host: session)
    image = f"{host}/p/r/one:latest"
    found = find_image(image)
    assert found is not None
    check_unchanged_images({image: found.digest}, "try")
    own_pages["/v2/p/r/one/manifests/latest"] = {**MANIFEST, "layers": []}
    with pytest.raises(ConfigError, match="not the one that the run began with"):
        check_unchanged_images({image: found.digest}, "try")
    del own_pages["/v2/p/r/one/manifests/latest"]
    with pytest.raises(ConfigError) as caught:
        check_unchanged_images({image: found.digest}, "try")
    assert caught.value.actual == "no such image"
    secret = f"{host}/secret/one:v1"
    with pytest.raises(ConfigError) as caught:
        check_unchanged_images({secret: found.digest}, "try")
    assert caught.value.actual == "the registry cannot be read from here"
