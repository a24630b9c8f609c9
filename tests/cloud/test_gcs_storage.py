"""Google Cloud Storage: races, interrupted uploads, credentials."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import google.auth
import pytest
from google.auth.credentials import AnonymousCredentials
from google.auth.exceptions import DefaultCredentialsError, RefreshError

from runners.operations.pipeline_request import PipelineRequest
from runners.operations.validate import validate
from sluice.project import own_root
from sluice.storage import gcs_storage
from sluice.storage.contents import Contents
from sluice.storage.gcs_storage import GcsStorage
from sluice.storage.storage import storage_for
from sluice.storage.storage_errors import PreconditionFailedError
from tests.cloud.faulty_gcs import CUT, LOST

pytestmark = pytest.mark.cloud

STORAGE = GcsStorage()
LARGE = bytes(range(256)) * (9 << 12)  # 9 MiB: more than one request, up and down.


def test_a_listing_of_several_pages_has_size_generation_and_time(bucket: Any) -> None:
    for number in range(7):
        bucket.put(f"in/file {number}", b"x" * number, age_s=100)
    bucket.put("in/")
    bucket.put("in/folder/")
    bucket.put("in/folder/one", b"1")
    bucket.put("in-between")
    bucket.requests()
    entries = STORAGE.list(bucket.uri("in"))
    assert len([one for one in bucket.requests() if "/o?" in one]) == 3
    assert [entry.name for entry in entries] == [
        *(f"file {number}" for number in range(7)),
        "folder",
    ]
    assert entries[-1].kind == "folder"
    assert entries[6].size_bytes == 6
    assert entries[6] == STORAGE.stat(bucket.uri("in/file 6"))
    assert time.time() - entries[6].modified_s == pytest.approx(100, abs=5)
    below = STORAGE.list(bucket.uri("in/"), recursive=True)
    assert [entry.name for entry in below][-1] == "folder/one"
    assert STORAGE.names(bucket.uri()) == ["in", "in-between"]
    assert not STORAGE.list(bucket.uri("nothing"))
    assert STORAGE.stat(bucket.uri("in/folder")).kind == "folder"
    assert STORAGE.exists(bucket.uri("in")) and not STORAGE.is_file(bucket.uri("in"))
    assert not STORAGE.exists(bucket.uri("nothing"))


def test_the_losing_writer_gets_an_error(bucket: Any) -> None:
    uri = bucket.put("record.json", b"one")
    first = STORAGE.stat(uri).generation
    STORAGE.write_atomically(uri, b"two", if_generation=first)
    with pytest.raises(PreconditionFailedError) as caught:
        STORAGE.write_atomically(uri, b"three", if_generation=first)
    assert caught.value.filename == uri
    assert bucket.get("record.json") == b"two"
    assert not STORAGE.write_if_absent(uri, b"four")
    assert STORAGE.write_if_absent(bucket.uri("new"), b"five")
    assert bucket.get("new") == b"five"


def test_of_many_writers_one_wins(bucket: Any) -> None:
    uri = bucket.uri("claim")
    together = threading.Barrier(4)

    def claim(number: int) -> bool:
        together.wait()
        return STORAGE.write_if_absent(uri, b"%d" % number)

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(claim, range(4)))
    assert won.count(True) == 1
    assert bucket.get("claim") == b"%d" % won.index(True)


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["small", "large"])
def test_a_lost_response_is_not_a_lost_race(bucket: Any, data: bytes) -> None:
    """The upload is done, its answer is a 503, and the retry meets its own object."""
    request = ("PUT", "upload/session") if data is LARGE else ("POST", "name=claim")
    bucket.server.fail(*request, LOST, 1)
    assert STORAGE.write_if_absent(bucket.uri("claim"), data)
    assert bucket.get("claim") == data


def test_a_large_upload_that_fails_in_the_middle_goes_on(bucket: Any) -> None:
    bucket.fail("POST", "uploadType=resumable", 503)
    bucket.server.fail("PUT", "upload/session", 503, 2)
    with STORAGE.open(bucket.uri("large"), "wb") as file:
        file.write(LARGE)
        assert bucket.names() == []
    assert bucket.get("large") == LARGE


def test_an_abandoned_upload_never_appears(bucket: Any) -> None:
    with pytest.raises(KeyError), STORAGE.open(bucket.uri("part"), "wb") as file:
        file.write(LARGE)
        raise KeyError
    file = STORAGE.open(bucket.uri("part"), "wb")
    file.write(LARGE)
    del file
    assert bucket.names() == []


def test_an_upload_that_is_refused_for_good_leaves_the_old_object(bucket: Any) -> None:
    uri = bucket.put("file", b"old")
    bucket.fail("POST", "name=file", 503, times=999)
    with pytest.raises(OSError, match="storage service failed"):
        STORAGE.write_atomically(uri, b"new")
    assert bucket.get("file") == b"old"


@pytest.mark.parametrize("status", [503, 429, CUT])
def test_a_read_that_fails_in_the_middle_is_tried_again(
    bucket: Any, status: int
) -> None:
    uri = bucket.put("large", LARGE)
    bucket.fail("GET", "large.*alt=media", status, times=2)
    with STORAGE.open(uri, "rb") as file:
        assert file.read(10) == LARGE[:10]
        assert file.read() == LARGE[10:]
    bucket.fail("GET", "large.*alt=media", status)
    assert STORAGE.read(uri) == LARGE


def test_a_reader_never_sees_parts_of_two_generations(bucket: Any) -> None:
    uri = bucket.put("large", LARGE)
    with STORAGE.open(uri, "rb") as file:
        assert file.read(10) == LARGE[:10]
        bucket.put("large", LARGE[::-1])
        with pytest.raises(PreconditionFailedError):
            file.read()
    assert STORAGE.read(uri) == LARGE[::-1]


def test_an_empty_object_is_read_and_written(bucket: Any) -> None:
    STORAGE.write_atomically(bucket.uri("empty"), b"")
    assert STORAGE.read(bucket.uri("empty")) == b""
    with STORAGE.open(bucket.uri("empty"), "rb") as file:
        assert file.read() == b""


def test_a_tree_is_deleted_and_its_neighbours_are_not(bucket: Any) -> None:
    for name in ("out/", "out/1/a", "out/1/b", "out/2", "out", "out-2", "output/1"):
        bucket.put(name)
    STORAGE.delete_tree(bucket.uri("out/"))
    assert bucket.names() == ["out-2", "output/1"]
    STORAGE.delete_tree(bucket.uri("out"))
    for whole in (bucket.uri(), bucket.uri().rstrip("/")):
        with pytest.raises(ValueError, match="whole bucket"):
            STORAGE.delete_tree(whole)


def test_the_contents_of_an_artifact_in_a_bucket(bucket: Any) -> None:
    assert Contents.read(bucket.uri("model")) is None
    for name in ("Format-Serving/saved_model.pb", "Format-Serving/a/b", ".hidden"):
        bucket.put(f"model/{name}", name.encode())
    made = Contents.read(bucket.uri("model"), "Format-Serving")
    assert made is not None and made.files == 2 and made.model_digest
    assert made.damage(bucket.uri("model")) is None
    bucket.put("model/Format-Serving/a/b", b"Format-Serving/a/c")
    assert "a model of SHA-256" in str(made.damage(bucket.uri("model")))
    bucket.remove("model/Format-Serving/a/b")
    assert "now 1 file" in str(made.damage(bucket.uri("model")))


def test_a_rename_with_a_lost_answer_has_succeeded(bucket: Any) -> None:
    bucket.put("a", b"a")
    bucket.fail("DELETE", "/o/a", LOST)
    STORAGE.rename(bucket.uri("a"), bucket.uri("b"))
    assert bucket.names() == ["b"]


def test_a_rename_replaces_its_target(bucket: Any) -> None:
    bucket.put("a", b"new")
    bucket.put("b", b"old")
    bucket.fail("POST", "rewriteTo", 503)
    STORAGE.rename(bucket.uri("a"), bucket.uri("b"))
    assert (bucket.names(), bucket.get("b")) == (["b"], b"new")
    with pytest.raises(FileNotFoundError):
        STORAGE.rename(bucket.uri("a"), bucket.uri("b"))


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (401, PermissionError, "gcloud auth application-default login"),
        (403, PermissionError, "permission denied"),
        (503, OSError, "made to fail"),
    ],
)
def test_every_call_says_why_it_fails(
    bucket: Any, status: int, kind: type[OSError], text: str
) -> None:
    uri = bucket.put("file", b"1")
    for method in ("GET", "POST", "DELETE"):
        bucket.fail(method, "", status, times=9999)
    for call in (
        lambda: STORAGE.list(uri),
        lambda: STORAGE.stat(uri),
        lambda: STORAGE.is_file(uri),
        lambda: STORAGE.read(uri),
        lambda: STORAGE.open(uri, "rb"),
        lambda: STORAGE.write_atomically(uri, b""),
        lambda: STORAGE.write_if_absent(uri, b""),
        lambda: STORAGE.rename(uri, uri),
        lambda: STORAGE.delete(uri),
        lambda: STORAGE.delete_tree(uri),
    ):
        with pytest.raises(kind, match=text) as caught:
            call()
        assert caught.value.filename == uri


def test_a_bucket_that_is_not_there_is_named(server: Any) -> None:
    uri = "gs://no-such-bucket/file"
    for call in (STORAGE.list, STORAGE.read, STORAGE.stat, STORAGE.delete):
        with pytest.raises(FileNotFoundError) as caught:
            call(uri)
        assert caught.value.strerror == "there is no bucket gs://no-such-bucket"
    with pytest.raises(FileNotFoundError, match="no bucket"):
        STORAGE.write_atomically(uri, b"")


def test_credentials_are_the_default_ones_or_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    found = AnonymousCredentials()
    monkeypatch.setattr(google.auth, "default", lambda **_: (found, None))
    gcs_storage._client_of.cache_clear()
    assert gcs_storage._client()._credentials is found

    def none(**_: object) -> None:
        raise DefaultCredentialsError

    monkeypatch.setattr(google.auth, "default", none)
    gcs_storage._client_of.cache_clear()
    assert isinstance(gcs_storage._client()._credentials, AnonymousCredentials)
    gcs_storage._client_of.cache_clear()


def test_expired_credentials_are_reported(
    bucket: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(*_: object, **__: object) -> None:
        raise RefreshError("invalid_grant")

    monkeypatch.setattr(AnonymousCredentials, "before_request", ended)
    with pytest.raises(PermissionError, match="application-default login"):
        STORAGE.read(bucket.uri("file"))


WRITER = """
import os, signal, sys
from sluice.storage.storage import storage_for
base, = sys.argv[1:]
storage = storage_for(base)
storage.write_atomically(f"{base}/part-0", b"0" * 100)
assert not {"tensorflow", "tfx"} & sys.modules.keys()
with storage.open(f"{base}/part-1", "wb") as file:
    file.write(b"1" * (9 << 20))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_writer_that_is_killed_between_parts_leaves_whole_ones(bucket: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WRITER, bucket.uri("out")], env=dict(os.environ)
    )
    assert done.returncode == -signal.SIGKILL
    assert bucket.names() == ["out/part-0"]
    assert storage_for(bucket.uri("out")).read(bucket.uri("out/part-0")) == b"0" * 100


def test_validate_without_a_network_answers_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found: it waited for the client's retries, 107 seconds."""
    monkeypatch.chdir(own_root())
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    monkeypatch.setattr(gcs_storage, "RETRY", gcs_storage.DEFAULT_RETRY)
    monkeypatch.setattr(gcs_storage, "NO_ANSWER_S", 0.5)
    begun = time.monotonic()
    overrides = ("data.dir=gs://bucket/x",)
    [warning] = validate(PipelineRequest(name="digits", overrides=overrides)).warnings
    assert "no connection to the storage service: is the network there?" in warning
    assert time.monotonic() - begun < 10
    assert gcs_storage.RETRY is gcs_storage.DEFAULT_RETRY
