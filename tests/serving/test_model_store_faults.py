"""Model store: killed and racing publishers, full disks."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from serving.local_store import LocalModelStore
from sluice.errors import ServingError
from sluice.storage import atomic, digest

pytestmark = pytest.mark.fault

PROJECT = Path(__file__).parents[2]

# Each one stops the publisher at a point for the parent to kill it there.
STOPS = {
    "in the middle of a file": """
def stop(source, target):
    open(target, "wb").write(open(source, "rb").read(3)); wait()
shutil.copyfile = stop
""",
    "before the record": "atomic.write_json = wait",
    "before the rename": "os.rename = wait",
}
AFTER_THE_RENAME = """
rename = os.rename
def stop(source, target):
    rename(source, target); wait()
os.rename = stop
"""

PUBLISHER = """
import os, shutil, sys, time
from serving.local_store import LocalModelStore
from sluice.storage import atomic
def wait(*_):
    print("waiting", flush=True)
    time.sleep(600)
{stop}
LocalModelStore(sys.argv[1]).publish(sys.argv[2], facts={{}})
"""

RACER = """
import json, sys
from serving.local_store import LocalModelStore
print("ready", flush=True)
sys.stdin.readline()
store = LocalModelStore(sys.argv[1])
publication = store.publish(sys.argv[2], facts={"who": sys.argv[3]})
print(json.dumps([publication.version, publication.state]))
"""


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_when_waiting(process):
    assert process.stdout.readline() == "waiting\n"
    process.kill()
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGKILL


def assert_tidy(root, versions):
    names = {".lock", ".versions", *(str(version) for version in versions)}
    assert set(os.listdir(root)) == names


@pytest.mark.parametrize("stop", STOPS.values(), ids=STOPS.keys())
def test_killed_publisher_shows_nothing_and_is_swept(tmp_path, make_saved_model, stop):
    store = LocalModelStore(tmp_path / "serving")
    store.publish(make_saved_model("a", b"a"), facts={})
    source = make_saved_model("b", b"b")

    kill_when_waiting(start(PUBLISHER.format(stop=stop), store.root, source))

    assert list(store.root.glob(".staging*"))
    assert [version.version for version in store.versions()] == [1]
    assert store.versions()[-1].is_intact()

    after = store.publish(source, facts={})

    assert after.state == "pushed"
    assert after.version > 1
    assert digest.of_tree(after.uri) == digest.of_tree(source)
    assert_tidy(store.root, {1, after.version})


def test_killed_after_the_rename_is_published(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    source = make_saved_model()

    code = PUBLISHER.format(stop=AFTER_THE_RENAME)
    kill_when_waiting(start(code, store.root, source))

    assert store.versions()[-1].is_intact()
    assert store.publish(source, facts={}).state == "already_served"
    assert_tidy(store.root, {1})


def race(store, sources, watch):
    """Publishes from one process per source at once; calls ``watch`` meanwhile."""
    racers = [start(RACER, store.root, source, n) for n, source in enumerate(sources)]
    for racer in racers:
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    while any(racer.poll() is None for racer in racers):
        watch()
    assert [racer.returncode for racer in racers] == [0] * len(racers)
    return [tuple(json.loads(racer.communicate(timeout=30)[0])) for racer in racers]


def test_racing_publishers_of_different_models(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    sources = [make_saved_model(f"m{i}", os.urandom(4 << 20)) for i in range(4)]

    def watch():
        assert all(version.is_intact() for version in store.versions())

    results = race(store, sources, watch)

    assert sorted(results) == [(version, "pushed") for version in (1, 2, 3, 4)]
    assert [version.version for version in store.versions()] == [1, 2, 3, 4]
    watch()
    for (number, _), source in zip(results, sources, strict=True):
        assert digest.of_tree(store.root / str(number)) == digest.of_tree(source)
    who = {version.version: version.facts["who"] for version in store.versions()}
    assert [who[number] for number, _ in results] == ["0", "1", "2", "3"]
    assert_tidy(store.root, {1, 2, 3, 4})


def test_reader_does_not_wait_for_a_publisher(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    store.publish(make_saved_model(), facts={})

    with atomic.lock(store.root / ".lock"):
        assert store.versions()[-1].version == 1


@pytest.fixture
def disk(tmp_path):
    """A file system of 4 MB; skips where this user must not mount one."""
    target = tmp_path / "disk"
    target.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(target)]
    if shutil.which("mount") is None or subprocess.run(command).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    yield target
    subprocess.run(["umount", str(target)], check=True)


def test_full_disk_keeps_the_old_version_alone(disk, make_saved_model):
    store = LocalModelStore(disk / "serving")
    store.publish(make_saved_model("small", b"a"), facts={})
    large = make_saved_model("large", os.urandom(8 << 20))

    with pytest.raises(ServingError, match="No space left on device") as caught:
        store.publish(large, facts={})

    assert caught.value.where == str(store.root)
    assert [version.version for version in store.versions()] == [1]
    assert store.versions()[-1].is_intact()
    assert_tidy(store.root, {1})
    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 2
