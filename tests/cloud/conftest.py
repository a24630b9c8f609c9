"""Fixtures: the emulator of Google Cloud Storage, and fakes of the services."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from runners.operations.find_run import find_run
from sluice.project import own_root
from sluice.record.run_record import RunRecord
from sluice.workspace import locate
from tests.cloud.fake_vertex import FakeVertex
from tests.cloud.faulty_gcs import FAULTY_GCS, control
from tests.kit.gcs.gcs_emulator import GcsEmulator
from tests.runners.cloud.small_job import EXECUTORS


@pytest.fixture(scope="session")
def gcs_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the emulator's contents."""
    return tmp_path_factory.mktemp("gcs")


@pytest.fixture(scope="session")
def gcs(gcs_root: Path) -> Iterator[GcsEmulator]:
    with GcsEmulator(gcs_root, api=FAULTY_GCS) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def server(gcs: GcsEmulator, gcs_root: Path) -> Any:
    """Its methods are those of ``FaultyGcs``."""
    return control(gcs_root)


@pytest.fixture(autouse=True)
def emulator(gcs: GcsEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leads all clients to the emulator; ours tries again for a moment only."""
    from sluice.storage import gcs_storage

    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in gcs.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sluice.network._is_command", False)
    quick = gcs_storage.RETRY.with_delay(0.001, 0.01, 2).with_timeout(0.5)
    monkeypatch.setattr(gcs_storage, "RETRY", quick)
    # Otherwise each retry of a download or upload waits up to a second more.
    monkeypatch.setattr("google.resumable_media._helpers.random.randint", min)


class Bucket:
    """A bucket of the emulator, for one test.

    Attributes:
      name: its name.
      server: the emulator, to look at and to make fail.
    """

    def __init__(self, server: Any, name: str) -> None:
        self.name = name
        self.server = server
        server.make_bucket(name)

    def uri(self, name: str = "") -> str:
        """Returns an object's address."""
        return f"gs://{self.name}/{name}"

    def put(self, name: str, content: bytes = b"", age_s: float = 0) -> str:
        """Puts an object and returns its address."""
        self.server.put(self.name, name, content, age_s)
        return self.uri(name)

    def get(self, name: str) -> bytes:
        return self.server.get(self.name, name)

    def remove(self, name: str) -> None:
        self.server.remove(self.name, name)

    def names(self, prefix: str = "") -> list[str]:
        return self.server.names(self.name, prefix)

    def fail(self, method: str, path: str, status: int, times: int = 1) -> None:
        """Lets the next requests fail whose path has this in it."""
        self.server.fail(method, rf"{self.name}.*{path}", status, times)

    def requests(self) -> list[str]:
        """Returns the requests since the last call, of all buckets."""
        return self.server.requests()


@pytest.fixture
def bucket(server: Any) -> Iterator[Bucket]:
    """A bucket of its own."""
    yield Bucket(server, f"bucket-{uuid4().hex[:8]}")
    server.heal()
    server.requests()


@pytest.fixture
def vertex(monkeypatch: pytest.MonkeyPatch) -> FakeVertex:
    """The client of Vertex AI and Cloud Logging; requests are repeated for 0.3 s."""
    from runners.cloud import vertex_client

    fake, connection = FakeVertex(), vertex_client.VertexService
    # There are no credentials for an address in clear text.
    address = "CLOUDSDK_API_ENDPOINT_OVERRIDES_AIPLATFORM"
    monkeypatch.setenv(address, "http://127.0.0.1:9")
    monkeypatch.setattr(connection, "make_client", lambda self, kind: fake)
    monkeypatch.setattr(
        connection, "post", lambda self, url, json, **_: fake.post(json)
    )
    monkeypatch.setattr(vertex_client, "PATIENCE_S", 0.3)
    monkeypatch.setattr(vertex_client, "FIRST_WAIT_S", 0.01)
    monkeypatch.setattr(vertex_client, "REPEATED_S", 0.3)
    return fake


@pytest.fixture
def digits(tmp_path: Path, bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of digits, with names of its data in the bucket."""
    project = tmp_path / "project"
    for path in ("configs/digits.yaml", "schemas/digits/schema.pbtxt"):
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(own_root() / path, project / path)
    for split in ("train", "eval", "test"):
        bucket.put(f"data/{split}-0.tfrecord", b"x")
    monkeypatch.chdir(project)
    monkeypatch.delenv("SLUICE_WORKSPACE", raising=False)
    return project


def on_vertex(bucket: Bucket) -> tuple[str, ...]:
    """Returns the overrides of a config that submit it to the fake."""
    return (
        "cloud.engine=vertex",
        f"cloud.root={bucket.uri('sluice')}",
        "cloud.project=project",
        "cloud.region=europe-west4",
        "cloud.image=sluice/digits",
        f"data.dir={bucket.uri('data')}",
    )


def status(**options: Any) -> Any:
    """Returns the record of a run of digits."""
    return find_run("digits", **options).record


def run_dir_of(project: Path, record: RunRecord) -> Path:
    return locate(project, "digits").run_dir(record.run_id)


def succeed(vertex: Any, job_id: str) -> None:
    """Ends a job and all its tasks."""
    for name in EXECUTORS:
        vertex.task(job_id, name, "SUCCEEDED")
    vertex.end(job_id, "SUCCEEDED")
