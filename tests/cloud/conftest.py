"""Fixtures: the emulator of Google Cloud Storage for the real client."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from runners.rehearsal.gcs_emulator import GcsEmulator

FAULTY_GCS = "tests.cloud.faulty_gcs.FaultyGcs"

# For the fakes beside this file: test folders are no packages.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def gcs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GcsEmulator]:
    with GcsEmulator(tmp_path_factory.mktemp("gcs"), server=FAULTY_GCS) as emulator:
        yield emulator


@pytest.fixture(scope="session")
def server(gcs: GcsEmulator) -> Any:
    """Its methods are those of ``FaultyGcs``."""
    return gcs.server


@pytest.fixture(autouse=True)
def emulator(gcs: GcsEmulator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leads all clients to the emulator; ours tries again for a moment only."""
    from sluice.storage import gcs_storage

    for name in os.environ:
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    for name, value in gcs.environment().items():
        monkeypatch.setenv(name, value)
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
