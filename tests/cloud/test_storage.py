"""The contract of storages, on a disk and in a bucket, and what only a bucket has."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from sluice.errors import UsageError
from sluice.storage import atomic, gcs_storage
from sluice.storage.local_copy import local_copy, local_output
from sluice.storage.storage import PreconditionFailedError, storage_for
from tests.cloud.faulty_gcs import CUT, LOST

pytestmark = pytest.mark.cloud

LARGE = bytes(range(256)) * (9 << 12)  # 9 MiB: more than one request, up and down.


@pytest.fixture(params=["disk", "bucket"])
def base(request, tmp_path, bucket):
    """The address of an empty folder."""
    return str(tmp_path) if request.param == "disk" else bucket.uri("a [1] \u00e9 #?*")


@pytest.fixture
def storage(base):
    return storage_for(base)


def put(base, **files):
    storage = storage_for(base)
    for name, content in files.items():
        uri = f"{base}/{name.replace('__', '/')}"
        storage.make_folder(os.path.dirname(uri))
        storage.write_atomically(uri, content)


def test_files_are_listed_read_renamed_and_deleted(storage, base):
    put(base, b=b"22", folder__inner=b"1", folder__deep__x=b"", c=LARGE)

    entries = {entry.name: entry for entry in storage.list(base)}
    assert [(e.name, e.kind, e.size_bytes) for e in entries.values()] == [
        ("b", "file", 2),
        ("c", "file", len(LARGE)),
        ("folder", "folder", 0),
    ]
    assert entries["b"] == storage.stat(f"{base}/b")
    assert time.time() - entries["b"].modified_s == pytest.approx(0, abs=60)
    assert storage.stat(f"{base}/folder") == entries["folder"]
    below = [entry.name for entry in storage.list(base, recursive=True)]
    assert below == ["b", "c", "folder/deep/x", "folder/inner"]
    assert storage.names(base) == ["b", "c", "folder"]
    assert storage.is_file(f"{base}/b") and not storage.is_file(f"{base}/folder")

    storage.rename(f"{base}/b", f"{base}/c")
    assert storage.read(f"{base}/c") == b"22"
    assert storage.names(base) == ["c", "folder"]
    storage.delete(f"{base}/c")
    storage.delete_tree(f"{base}/folder")
    storage.delete_tree(f"{base}/folder")
    assert not storage.names(base)


def test_what_is_not_there(storage, base):
    put(base, there=b"1")
    gone = f"{base}/gone"

    assert not storage.list(gone) and not storage.list(gone, recursive=True)
    assert not storage.list(f"{base}/there")
    assert not storage.exists(gone) and not storage.is_file(gone)
    for call in (storage.stat, storage.read, storage.delete):
        with pytest.raises(FileNotFoundError) as caught:
            call(gone)
        assert caught.value.filename == gone
    with pytest.raises(FileNotFoundError):
        storage.rename(gone, f"{base}/there")


def test_a_file_that_is_there_is_not_created_again(storage, base):
    put(base, file=b"one")
    assert not storage.write_if_absent(f"{base}/file", b"two")
    assert storage.read(f"{base}/file") == b"one"


def test_of_many_writers_of_a_new_file_one_wins(storage, base):
    storage.make_folder(base)
    together = threading.Barrier(4)

    def create(number):
        together.wait()
        return storage.write_if_absent(f"{base}/new", b"%d" % number)

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(create, range(4)))
    assert won.count(True) == 1
    assert storage.read(f"{base}/new") == b"%d" % won.index(True)
    assert storage.names(base) == ["new"]


def test_a_folder_is_copied_for_libraries_that_need_local_files(storage, base):
    put(base, a__one=b"1", a__two_pb=b"2")

    with local_copy(f"{base}/a", ["*_pb"]) as folder:
        assert (folder / "two_pb").read_bytes() == b"2"
    with local_copy(f"{base}/a/one") as file:
        assert file.read_bytes() == b"1"
    with local_output(f"{base}/out") as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "x").write_bytes(b"3")
    assert storage.read(f"{base}/out/deep/x") == b"3"
    with contextlib.suppress(KeyError), local_output(f"{base}/failed") as folder:
        raise KeyError
    with pytest.raises(FileNotFoundError), local_copy(f"{base}/gone") as folder:
        os.stat(folder)
    assert not storage.list(f"{base}/failed")


WRITER = """
import os, resource, signal, sys
from sluice.storage.storage import storage_for
base, fault = sys.argv[1:]
storage = storage_for(base)
if fault == "kill":
    os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
    if "://" in base:
        gcs = sys.modules["sluice.storage.gcs_storage"].GcsStorage
        gcs.upload = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
else:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
assert not {"tensorflow", "tfx"} & sys.modules.keys()
if fault == "create":
    storage.write_if_absent(f"{base}/new", b"x" * 10_000)
storage.write_atomically(f"{base}/old", b"x" * 10_000)
"""


@pytest.mark.parametrize("fault", ["kill", "full", "create"])
def test_a_writer_that_is_killed_or_short_of_space_leaves_no_part(base, storage, fault):
    if "://" in base and fault != "kill":
        pytest.skip("a bucket is never full")
    put(base, old=b"old")

    done = subprocess.run(
        [sys.executable, "-c", WRITER, base, fault], capture_output=True
    )

    if fault == "kill":
        assert done.returncode == -signal.SIGKILL, done.stderr
    else:
        assert b"File too large" in done.stderr
        assert storage.names(base) == ["old"]
    assert storage.read(f"{base}/old") == b"old"


def test_local_paths_need_no_client_and_other_addresses_are_refused(tmp_path):
    script = (
        "import sys\n"
        "from sluice.storage.storage import storage_for\n"
        "storage_for('/tmp').list('/tmp')\n"
        "loaded = {'google.cloud.storage', 'requests', 'tfx', 'tensorflow'}\n"
        "assert not loaded & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    for scheme in ("s3", "hdfs", "file"):
        with pytest.raises(UsageError, match=f"{scheme}:// is not supported"):
            storage_for(f"{scheme}://bucket/a")


def test_a_local_file_of_another_generation_is_no_longer_the_same(tmp_path):
    path = tmp_path / "a"
    atomic.write_text(path, "old")
    before = storage_for(path).stat(str(path))
    atomic.write_text(path, "new")
    os.utime(path, (before.modified_s, before.modified_s))
    after = storage_for(path).stat(str(path))

    assert after.generation != before.generation
    assert after.changed_s > before.modified_s


# Only in a bucket.


@pytest.fixture
def gs():
    return gcs_storage.GcsStorage()


@pytest.mark.parametrize("data", [b"small", LARGE], ids=["small", "large"])
def test_a_lost_response_is_not_a_lost_race(bucket, gs, data):
    """The upload is done, its answer is a 503, and the retry meets its own object."""
    request = ("PUT", "upload/session") if data is LARGE else ("POST", "name=claim")
    bucket.server.fail(*request, LOST, 1)
    assert gs.write_if_absent(bucket.uri("claim"), data)
    assert bucket.get("claim") == data

    bucket.fail("DELETE", "/o/claim", LOST)
    gs.rename(bucket.uri("claim"), bucket.uri("b"))
    assert bucket.names() == ["b"]


def test_an_upload_that_fails_for_a_moment_goes_on_and_a_failed_one_never_appears(
    bucket, gs
):
    bucket.fail("POST", "uploadType=resumable", 503)
    bucket.server.fail("PUT", "upload/session", 503, 2)
    with gs.open(bucket.uri("large"), "wb") as file:
        file.write(LARGE)
        assert bucket.names() == []
    assert bucket.get("large") == LARGE

    with pytest.raises(KeyError), gs.open(bucket.uri("part"), "wb") as file:
        file.write(LARGE)
        raise KeyError
    uri = bucket.put("old", b"old")
    bucket.fail("POST", "name=old", 503, times=999)
    with pytest.raises(OSError, match="storage service failed"):
        gs.write_atomically(uri, b"new")
    assert (bucket.names(), bucket.get("old")) == (["large", "old"], b"old")


@pytest.mark.parametrize("status", [503, 429, CUT])
def test_a_read_that_fails_in_the_middle_is_tried_again(bucket, gs, status):
    uri = bucket.put("large", LARGE)
    bucket.fail("GET", "large.*alt=media", status, times=2)
    with gs.open(uri, "rb") as file:
        assert file.read(10) + file.read() == LARGE


def test_a_reader_never_sees_parts_of_two_generations(bucket, gs):
    uri = bucket.put("large", LARGE)
    first = gs.stat(uri).generation
    with gs.open(uri, "rb", generation=first) as file:
        assert file.read(10) == LARGE[:10]
        bucket.put("large", LARGE[::-1])
        with pytest.raises(PreconditionFailedError):
            file.read()
    with pytest.raises(PreconditionFailedError):
        gs.open(uri, "rb", generation=first)
    assert gs.read(uri) == LARGE[::-1]


def test_neighbours_of_a_tree_and_whole_buckets_are_not_deleted(bucket, gs):
    for name in ("out/", "out/1/a", "out/1/b", "out/2", "out", "out-2", "output/1"):
        bucket.put(name)
    gs.delete_tree(bucket.uri("out/"))
    assert bucket.names() == ["out-2", "output/1"]
    for whole in (bucket.uri(), bucket.uri().rstrip("/")):
        with pytest.raises(ValueError, match="whole bucket"):
            gs.delete_tree(whole)


@pytest.mark.parametrize(
    ("status", "kind", "text"),
    [
        (403, PermissionError, "permission denied"),
        (503, OSError, "the storage service failed .*(made to fail|503)"),
    ],
)
def test_every_call_says_why_it_fails(bucket, gs, status, kind, text):
    uri = bucket.put("file", b"1")
    for method in ("GET", "POST", "DELETE"):
        bucket.fail(method, "", status, times=9999)
    for call in (
        lambda: gs.list(uri),
        lambda: gs.is_file(uri),
        lambda: gs.read(uri),
        lambda: gs.open(uri, "rb"),
        lambda: gs.write_atomically(uri, b""),
        lambda: gs.write_if_absent(uri, b""),
        lambda: gs.rename(uri, uri),
        lambda: gs.delete(uri),
        lambda: gs.delete_tree(uri),
    ):
        with pytest.raises(kind, match=text) as caught:
            call()
        assert caught.value.filename == uri


def test_a_bucket_that_is_not_there_is_named(server, gs):
    uri = "gs://no-such-bucket/file"
    for call in (gs.list, gs.read, gs.stat, gs.delete):
        with pytest.raises(FileNotFoundError, match="no such bucket") as caught:
            call(uri)
        assert (caught.value.errno, caught.value.filename) == (errno.ENOENT, uri)


def test_links_and_pipes_of_a_disk(tmp_path):
    storage, tree, other = storage_for(tmp_path), tmp_path / "tree", tmp_path / "other"
    for folder in (tree, other):
        folder.mkdir()
    (other / "kept").touch()
    (tree / "link").symlink_to(other)
    os.mkfifo(tree / "pipe")
    (tree / "nowhere").symlink_to(tmp_path / "gone")

    kinds = {entry.name: entry.kind for entry in storage.list(str(tree))}
    assert kinds == {"link": "folder", "pipe": "other", "nowhere": "file"}
    below = [entry.name for entry in storage.list(str(tree), recursive=True)]
    assert below == ["nowhere"]
    storage.delete_tree(str(tree))
    assert list(tmp_path.rglob("*")) == [other, other / "kept"]
