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
from serving.store_owner import Owner
from sluice.errors import ServingError, UsageError
from sluice.storage import digest

pytestmark = [pytest.mark.cloud, pytest.mark.fault]

PROJECT = Path(__file__).parents[2]
LOST = -1

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
for name in ("upload", "delete", "delete_tree"):
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
    records = {f".versions/{version}.json", f".versions/{version}.claim"}
    return {*files, f"{version}/saved_model.pb", *records}


def test_killed_before_any_request_shows_nothing(bucket, store, make_saved_model):
    """The claim, three uploads, of which the graph is the last, and the record."""
    source = make_saved_model("b", b"b")
    for number in range(6):
        store.publish(make_saved_model(f"a{number}", b"%d" % number), facts={})
        before = store.newest().version

        is_killed = _kill_before_request(number, store, source)

        assert is_killed is (number < 5)
        published = store.newest()
        assert published.is_intact()
        assert (published.version > before) is (number == 5)
        if f"{before + 1}/saved_model.pb" in _objects(bucket):
            folder = {n for n in _objects(bucket) if n.startswith(f"{before + 1}/")}
            assert len(folder) == 3, "a server would load half of a model"

        again = store.publish(source, facts={})
        assert again.state == ("already_served" if number == 5 else "pushed")
        assert again.version == before + 1, "a claim is completed"
        assert store.newest().digest == digest.of_tree(source)


def test_another_model_takes_the_number_after_that_of_a_killed_publisher(
    bucket, store, make_saved_model
):
    assert _kill_before_request(2, store, make_saved_model("a"))

    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 2
    assert "1/saved_model.pb" not in _objects(bucket)


def _race(store, sources):
    """Publishes at once, each after the others have listed the store."""
    results = []
    barrier = threading.Barrier(len(sources))

    class Racer(BucketModelStore):
        waits = True

        def _claim(self, *arguments):
            if self.waits:
                self.waits = False
                barrier.wait(20)
            return super()._claim(*arguments)

    def publish(source):
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


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", "name=serving/.versions/1.json", LOST),
        ("POST", "name=serving/.versions/1.claim", LOST),
        ("POST", "name=serving/.versions/owner.json", LOST),
        ("POST", "name=serving/1/saved_model.pb", LOST),
        ("POST", "name=serving/.versions/1.json", 503),
        ("POST", "name=serving/1/variables", 429),
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
    bucket.fail("POST", r"name=serving/2/saved_model.pb", 403)

    with pytest.raises(ServingError, match="permission denied") as failed:
        store.publish(make_saved_model("b", b"b"), facts={})

    assert failed.value.where == store.uri
    assert "roles/storage.objectUser" in str(failed.value.hint)
    assert store.newest().version == 1
    assert "2/saved_model.pb" not in _objects(bucket)
    assert store.publish(make_saved_model("c", b"b"), facts={}).version == 2


def test_a_store_that_cannot_be_written_is_found_before_a_run(bucket, store):
    bucket.fail("POST", "name=serving/.probe", 403)
    with pytest.raises(UsageError, match="permission denied") as refused:
        store.prepare()
    assert "roles/storage.objectUser" in str(refused.value.hint)
    with pytest.raises(UsageError, match="there is no such bucket") as refused:
        BucketModelStore("gs://no-such-bucket/serving").prepare()
    assert "gcloud storage buckets create" in str(refused.value.hint)
    store.prepare()
    assert _objects(bucket) == set()
