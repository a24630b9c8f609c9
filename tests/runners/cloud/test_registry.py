"""Reading the label of an image from its registry."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import requests

from runners.cloud.image import LABEL
from runners.cloud.registry import fingerprint_label
from sluice.errors import ConfigError, RemoteError

pytestmark = pytest.mark.cloud

CONFIG = {"config": {"Labels": {LABEL: "0123", "other": "x"}}}
MANIFEST = {"config": {"digest": "sha256:c"}}
INDEX = {
    "manifests": [
        {"digest": "sha256:a", "platform": {"architecture": "arm64"}},
        {"digest": "sha256:m", "platform": {"architecture": "amd64"}},
    ]
}
PAGES = {
    "/v2/p/r/one/manifests/latest": MANIFEST,
    "/v2/p/r/one/blobs/sha256:c": CONFIG,
    "/v2/p/r/many/manifests/v1": INDEX,
    "/v2/p/r/many/manifests/sha256:m": MANIFEST,
    "/v2/p/r/many/blobs/sha256:c": CONFIG,
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


@pytest.mark.parametrize(
    ("image", "label"),
    [("p/r/one", "0123"), ("p/r/many:v1", "0123"), ("p/bare:v2@sha256:m", None)],
)
def test_the_label_of_an_image(
    host: str, session: requests.Session, image: str, label: str | None
) -> None:
    assert fingerprint_label(f"{host}/{image}", session) == label


def test_an_image_without_a_registry_has_no_label() -> None:
    assert fingerprint_label("sluice:0123") is None


def test_an_image_that_is_not_there(host: str, session: requests.Session) -> None:
    # Not a RemoteError: of that, `sluice submit` only warns.
    with pytest.raises(ConfigError, match="no such image") as caught:
        fingerprint_label(f"{host}/p/r/one:gone", session)
    assert caught.value.hint == f"sluice image push --repository {host}/p/r/one"


def test_an_image_that_may_not_be_read_from_here(
    host: str,
    session: requests.Session,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    assert fingerprint_label(f"{host}/secret/one:v1", session) is None
    # Without credentials, as on a machine that knows only a cluster.
    monkeypatch.delenv("GOOGLE_APPLICATION_CREDENTIALS", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    assert fingerprint_label(f"{host}/p/r/one") is None


def test_an_image_for_other_processors_only(
    host: str, session: requests.Session
) -> None:
    with pytest.raises(RemoteError, match="cannot be asked"):
        fingerprint_label(f"{host}/p/r/arm:v1", session)


def test_a_registry_that_does_not_answer(session: requests.Session) -> None:
    with pytest.raises(RemoteError, match="cannot be asked"):
        fingerprint_label("127.0.0.1:9/p/r:v1", session)
