"""Model store in a bucket: killed and racing publishers, failing requests."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from serving.bucket_store import BucketModelStore
from serving.saved_model_tree import SavedModelTree
from serving.store_owner import Owner
from sluice.errors import ServingError, UsageError
from sluice.storage import digest
from sluice.storage.gcs_storage import GcsStorage

pytestmark = [pytest.mark.cloud, pytest.mark.fault]

PROJECT = Path(__file__).parents[2]
LOST = -1
HOUR_S = 3600

# Stops before the request of this number that changes the bucket.
PUBLISHER = """
import sys, time
from serving.bucket_store import BucketModelStore
from sluice.storage.gcs_storage import GcsStorage
left = int(sys.argv[3])
def stopping(method):
    def call(*arguments, **named):
        global left
        if not left:
            print("waiting", flush=True)
            time.sleep(600)
        left -= 1
        return method(*arguments, **named)
    return call
for name in ("upload", "copy", "delete", "delete_tree"):
    setattr(GcsStorage, name, stopping(getattr(GcsStorage, name)))
BucketModelStore(sys.argv[1]).publish(sys.argv[2], facts={})
print("published", flush=True)
"""


@pytest.fixture
def store(bucket: Any) -> BucketModelStore:
    return BucketModelStore(bucket.uri("serving"))


def _kill_before_request(number: int, store: BucketModelStore, source: Path) -> bool:
    """Kills a publisher before a request; False if it needs fewer."""
    process = subprocess.Popen(
        [sys.executable, "-c", PUBLISHER, store.uri, source, str(number)],
        cwd=PROJECT,
        env={**os.environ},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    said = process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)
    return said == "waiting\n"


def _objects(bucket: Any) -> set[str]:
    return {name.removeprefix("serving/") for name in bucket.names("serving/")}


def _names(version: int) -> set[str]:
    folder = f"{version}/variables/variables"
    files = {f"{folder}.data-00000-of-00001", f"{folder}.index"}
    return {*files, f"{version}/saved_model.pb", f".versions/{version}.json"}


def test_killed_before_any_request_shows_nothing(bucket, store, make_saved_model):
    """3 uploads, the claim, 3 copies, the record, the claim's end, the staging's."""
    source = make_saved_model("b", b"b")
    for number in range(11):
        store.publish(make_saved_model(f"a{number}", b"%d" % number), facts={})
        before = store.newest().version

        is_killed = _kill_before_request(number, store, source)

        assert is_killed is (number < 10)
        published = store.newest()
        assert published.is_intact()
        assert (published.version > before) is (number >= 8)
        if f"{before + 1}/saved_model.pb" in _objects(bucket):
            folder = {n for n in _objects(bucket) if n.startswith(f"{before + 1}/")}
            assert len(folder) == 3, "a server would load half of a model"

        again = store.publish(source, facts={})
        assert again.state == ("already_served" if number >= 8 else "pushed")
        assert again.version == before + 1, "a claim is completed"
        assert store.newest().digest == digest.of_tree(source)
        assert not [n for n in _objects(bucket) if n.endswith(".claim")] or number == 8


def test_the_last_object_is_the_graph_and_the_record_follows(
    bucket, store, make_saved_model
):
    bucket.requests()
    store.publish(make_saved_model(), facts={})

    def at(text: str) -> int:
        (index,) = (i for i, line in enumerate(requests) if text in line)
        return index

    requests = [line for line in bucket.requests() if " POST " in line]
    copies = [i for i, line in enumerate(requests) if "rewriteTo" in line]
    assert at("/serving/1/saved_model.pb") == copies[-1] < at("1.json")
    assert "ifGenerationMatch=0" in requests[at("1.json")]
    assert "ifGenerationMatch=0" in requests[at("1.claim")]


def _race(store: BucketModelStore, sources: list[Path]) -> list[tuple[int, str]]:
    """Publishes at once, each after the others have listed the store."""
    results: list[tuple[int, str]] = []
    barrier = threading.Barrier(len(sources))
    claim = BucketModelStore._claim

    class Racer(BucketModelStore):
        waits = True

        def _claim(self, *arguments: Any) -> int | None:
            if self.waits:
                self.waits = False
                barrier.wait(20)
            return claim(self, *arguments)

    def publish(source: Path) -> None:
        done = Racer(store.uri).publish(source, facts={})
        results.append((done.version, done.state))

    threads = [threading.Thread(target=publish, args=[item]) for item in sources]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return sorted(results)


def test_racing_publishers_of_one_model_push_it_once(bucket, store, make_saved_model):
    results = _race(store, [make_saved_model()] * 3)

    assert results == [(1, "already_served")] * 2 + [(1, "pushed")]
    assert store.newest().is_intact()
    assert _objects(bucket) == _names(1)


def test_racing_publishers_of_different_models(bucket, store, make_saved_model):
    sources = [make_saved_model(f"m{i}", bytes([i])) for i in range(3)]

    assert _race(store, sources) == [(1, "pushed"), (2, "pushed"), (3, "pushed")]
    assert all(version.is_intact() for version in store.versions())
    assert _objects(bucket) == _names(1) | _names(2) | _names(3)


def test_a_claim_may_end_while_it_is_read(bucket, store, make_saved_model, monkeypatch):
    bucket.put("serving/.versions/1.claim", b"another digest")
    open_ = GcsStorage.open

    def late(self, uri: str, mode: Any, **options: Any) -> Any:
        file = open_(self, uri, mode, **options)
        if uri.endswith(".claim"):
            self.delete(uri)
        return file

    monkeypatch.setattr(GcsStorage, "open", late)

    assert store.publish(make_saved_model(), facts={}).state == "pushed"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "name=serving/.versions/1.json", LOST),
        ("POST", "name=serving/.versions/1.claim", LOST),
        ("POST", "name=serving/.versions/owner.json", LOST),
        ("POST", "rewriteTo.*saved_model.pb", LOST),
        ("DELETE", "1.claim", LOST),
        ("POST", "name=serving/.versions/1.json", 503),
        ("POST", "name=serving/.staging", 503),
        ("POST", "rewriteTo", 429),
        ("GET", "prefix=serving/.versions", 503),
    ],
)
def test_a_request_or_its_answer_is_lost(
    bucket, store, make_saved_model, method, path, status
):
    bucket.fail(method, path, status, 2)

    done = store.publish(make_saved_model(), facts={}, owner=Owner("digits"))

    assert (done.version, done.state) == (1, "pushed")
    assert store.newest().is_intact()
    assert _objects(bucket) == _names(1) | {".versions/owner.json"}


def test_a_failed_push_leaves_nothing_that_a_server_loads(
    bucket, store, make_saved_model
):
    store.publish(make_saved_model("a"), facts={})
    bucket.fail("POST", r"rewriteTo.*2/saved_model.pb", 403)

    with pytest.raises(ServingError, match="permission denied") as failed:
        store.publish(make_saved_model("b", b"b"), facts={})

    assert failed.value.where == store.uri
    assert "roles/storage.objectUser" in str(failed.value.hint)
    assert _objects(bucket) == _names(1) | {".versions/2.json"}
    assert store.publish(make_saved_model("c", b"b"), facts={}).version == 3


def test_a_version_with_a_record_is_pushed_whatever_fails_afterwards(
    bucket, store, make_saved_model
):
    bucket.fail("DELETE", "1.claim", 403)
    bucket.fail("GET", "prefix=serving/.staging", 403, times=9)

    assert store.publish(make_saved_model(), facts={}).state == "pushed"

    bucket.server.heal()
    assert store.newest().is_intact()
    store.prepare()
    assert ".versions/1.claim" not in _objects(bucket)


def test_a_store_that_cannot_be_written_is_found_before_a_run(bucket, store):
    bucket.fail("POST", "name=serving/.staging", 403)
    with pytest.raises(UsageError, match="permission denied") as refused:
        store.prepare()
    assert "roles/storage.objectUser" in str(refused.value.hint)
    with pytest.raises(UsageError, match="there is no such bucket") as refused:
        BucketModelStore("gs://no-such-bucket/serving").prepare()
    assert "gcloud storage buckets create" in str(refused.value.hint)
    store.prepare()
    assert _objects(bucket) == set()


def test_a_model_that_changes_during_the_upload_is_not_pushed(
    bucket, store, make_saved_model, monkeypatch
):
    source = make_saved_model()
    read = SavedModelTree.read

    def changing(root: Path) -> SavedModelTree:
        found = read(root)
        (source / "saved_model.pb").write_bytes(b"GRAPH")
        return found

    monkeypatch.setattr(SavedModelTree, "read", changing)
    with pytest.raises(ServingError, match="changed while it was being copied"):
        store.publish(source, facts={})
    assert _objects(bucket) == set()


@pytest.mark.parametrize("finisher", ["publish", "prepare"])
def test_what_a_killed_publisher_left_is_deleted(
    bucket, store, make_saved_model, finisher
):
    store.publish(make_saved_model("a"), facts={})
    bucket.put("serving/.versions/2.claim", b"a digest", age_s=HOUR_S)
    bucket.put("serving/2/variables/variables.index", b"half", age_s=HOUR_S)
    bucket.put("serving/.versions/3.claim", b"another digest", age_s=1)
    bucket.put("serving/3/variables/variables.index", b"in progress", age_s=1)
    bucket.put("serving/.staging-00/saved_model.pb", b"", age_s=25 * HOUR_S)
    bucket.put("serving/.staging-01/saved_model.pb", b"", age_s=HOUR_S)
    assert [version.version for version in store.versions()] == [1]

    if finisher == "prepare":
        store.prepare()
        now = set()
    else:
        assert store.publish(make_saved_model("b", b"b"), facts={}).version == 4
        now = _names(4)

    assert _objects(bucket) - now == _names(1) | {
        ".versions/2.json",
        ".versions/3.claim",
        "3/variables/variables.index",
        ".staging-01/saved_model.pb",
    }
    assert store.versions()[0].version == 1


def test_a_publisher_that_was_given_up_takes_another_number(
    bucket, store, make_saved_model, monkeypatch
):
    """It was suspended between claim and record, for longer than a claim counts."""
    copy = GcsStorage.copy

    def slow(self, source: str, target: str) -> None:
        copy(self, source, target)
        if target.endswith("1/saved_model.pb"):
            store._give_up(1)

    monkeypatch.setattr(GcsStorage, "copy", slow)

    assert store.publish(make_saved_model(), facts={}).version == 2
    assert _objects(bucket) == _names(2) | {".versions/1.json"}
    assert [version.version for version in store.versions()] == [2]


def test_a_copied_store_is_read_in_full(bucket, store, make_saved_model):
    """Objects have other generations there, and the same content."""
    store.publish(make_saved_model(), facts={})
    for name in bucket.names("serving/"):
        bucket.put(f"copy/{name.removeprefix('serving/')}", bucket.get(name))
    copied = BucketModelStore(bucket.uri("copy"))

    (version,) = copied.versions()
    assert version.is_intact()
    assert copied.publish(make_saved_model("b"), facts={}).state == "already_served"
    name = "copy/1/variables/variables.index"
    bucket.put(name, bucket.get(name).upper())
    assert "files with the digest" in str(version.difference())
