"""Credentials of ``gs://``, and what is said without them or without a network."""

from __future__ import annotations

import time

import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import RefreshError, TransportError

from sluice import network
from sluice.storage import gcs_storage
from sluice.storage.gcs_storage import GcsStorage

pytestmark = pytest.mark.cloud


@pytest.fixture
def gs():
    return GcsStorage()


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (RefreshError("invalid_grant"), PermissionError, "application-default login"),
        # Found: "permission denied", and the advice to log in.
        (TransportError("no answer"), OSError, "no connection to the storage service"),
    ],
)
def test_credentials_that_give_no_token(bucket, gs, monkeypatch, error, kind, said):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(AnonymousCredentials, "before_request", fail)
    with pytest.raises(kind, match=said):
        gs.read(bucket.uri("file"))


def test_without_a_network_a_command_is_told_at_once(gs, monkeypatch):
    """Found: it waited for the client's retries, 107 seconds, then 30."""
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    monkeypatch.setattr(gcs_storage, "_ADDRESS", "https://127.0.0.1:9")
    monkeypatch.setattr(gcs_storage, "RETRY", gcs_storage.RETRY.with_timeout(60))
    gcs_storage._client_of.cache_clear()
    network.begin_command()
    uri, begun = "gs://bucket/x", time.monotonic()
    for call in (gs.list, gs.exists, gs.read, gs.delete):
        with pytest.raises(OSError, match="no connection to the storage service"):
            call(uri)
    assert time.monotonic() - begun < 10
