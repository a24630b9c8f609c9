"""Model store: killed and racing publishers, full disks."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from serving.local_store import LocalModelStore
from sluice.errors import ServingError, UsageError
from sluice.storage import atomic, digest

pytestmark = pytest.mark.fault

PROJECT = Path(__file__).parents[2]

# Each one stops the publisher at a point for the parent to kill it there.
STOPS = {
    "in the middle of a file": """
def stop(reader, writer, length):
    writer.write(reader.read(3)); writer.flush(); wait()
shutil.copyfileobj = stop
""",
    "before the counter": "atomic.write_text = wait",
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

OWNING_RACER = """
import sys
from serving.local_store import LocalModelStore
from serving.store_owner import Owner
from sluice.errors import UsageError
print("ready", flush=True)
sys.stdin.readline()
root, model, name = sys.argv[1:]
try:
    done = LocalModelStore(root).publish(model, facts={"who": name}, owner=Owner(name))
    print(done.version, name)
except UsageError as error:
    print(error.what)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_when_waiting(process: subprocess.Popen[str]) -> None:
    assert process.stdout and process.stdin
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(signal.SIGKILL)
    assert process.wait(timeout=30) == -signal.SIGKILL
    process.stdin.close()
    process.stdout.close()


def assert_tidy(root: Path, versions: set[int]) -> None:
    names = {".lock", ".versions", *(str(version) for version in versions)}
    assert set(os.listdir(root)) == names
    records = {"next", *(f"{version}.json" for version in versions)}
    assert set(os.listdir(root / ".versions")) == records


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


def test_next_publish_sweeps_even_if_it_pushes_nothing(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    source = make_saved_model("a", b"a")
    store.publish(source, facts={})
    code = PUBLISHER.format(stop=STOPS["before the rename"])
    kill_when_waiting(start(code, store.root, make_saved_model("b", b"b")))

    assert store.publish(source, facts={}).state == "already_served"

    assert_tidy(store.root, {1})


def test_kill_at_any_moment_of_a_large_copy(tmp_path, make_saved_model):
    """No code is replaced here: the clock decides where the kill falls."""
    store = LocalModelStore(tmp_path / "serving")
    store.publish(make_saved_model("a", b"a"), facts={})
    source = make_saved_model("large", os.urandom(64 << 20))

    def staged() -> bool:
        return bool(list(store.root.glob(".staging*")))

    process = start(PUBLISHER.format(stop=""), store.root, source)
    deadline = time.monotonic() + 60
    while not staged() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.0005)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=30)

    left = store.versions()
    assert left and all(version.is_intact() for version in left)
    after = store.publish(source, facts={})
    assert after.version == store.versions()[-1].version
    assert store.versions()[-1].is_intact()
    assert not staged()


def race(
    store: LocalModelStore, sources: list[Path], watch: Callable[[], None]
) -> list[tuple[int, str]]:
    """Publishes from one process per source at once; calls ``watch`` meanwhile."""
    racers = [
        start(RACER, store.root, source, number)
        for number, source in enumerate(sources)
    ]
    for racer in racers:
        assert racer.stdout and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    while any(racer.poll() is None for racer in racers):
        watch()
    results = [json.loads(racer.communicate(timeout=30)[0]) for racer in racers]
    assert [racer.returncode for racer in racers] == [0] * len(racers)
    return [(version, state) for version, state in results]


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


def test_racing_publishers_of_one_model(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    source = make_saved_model(content=os.urandom(4 << 20))

    results = race(store, [source] * 4, watch=lambda: time.sleep(0.01))

    assert sorted(results) == [(1, "already_served")] * 3 + [(1, "pushed")]
    assert_tidy(store.root, {1})


def test_racing_pipelines_leave_one_owner(tmp_path, make_saved_model):
    """The store is nobody's before: whoever is first under the lock keeps it."""
    store = LocalModelStore(tmp_path / "serving")
    racers = [
        start(
            OWNING_RACER,
            store.root,
            make_saved_model(name, os.urandom(4 << 20)),
            name,
        )
        for name in ("digits", "taxi", "trips")
    ]
    for racer in racers:
        assert racer.stdout and racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin
        racer.stdin.write("go\n")
        racer.stdin.flush()
    said = [racer.communicate(timeout=60)[0].strip() for racer in racers]

    assert (
        sorted(said)[1:] == ["this serving directory belongs to another pipeline"] * 2
    )
    (version,) = store.versions()
    owner = json.loads((store.root / ".versions" / "owner.json").read_text())
    assert version.facts == {"who": owner["pipeline"]}
    assert min(said) == f"1 {owner['pipeline']}"


def test_reader_does_not_wait_for_a_publisher(tmp_path, make_saved_model):
    store = LocalModelStore(tmp_path / "serving")
    store.publish(make_saved_model(), facts={})

    with atomic.lock(store.root / ".lock"):
        assert store.versions()[-1].version == 1


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts small file systems; skips where this user must not."""
    mounted: list[Path] = []

    def mount_tmpfs(options: str) -> Path:
        target = tmp_path / f"mount{len(mounted)}"
        target.mkdir()
        if shutil.which("mount") is None:
            pytest.skip("there is no mount command here")
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(target)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            pytest.skip(f"tmpfs cannot be mounted here: {done.stderr.strip()}")
        mounted.append(target)
        return target

    yield mount_tmpfs
    for target in mounted:
        subprocess.run(["umount", str(target)], check=True)


def test_full_disk_keeps_the_old_version_alone(mount, make_saved_model):
    store = LocalModelStore(mount("size=4m") / "serving")
    store.publish(make_saved_model("small", b"a"), facts={})
    large = make_saved_model("large", os.urandom(8 << 20))

    with pytest.raises(ServingError, match="No space left on device") as caught:
        store.publish(large, facts={})

    assert caught.value.where == str(store.root)
    assert "free some space" in str(caught.value.hint)
    assert [version.version for version in store.versions()] == [1]
    assert store.versions()[-1].is_intact()
    assert_tidy(store.root, {1})
    assert store.publish(make_saved_model("b", b"b"), facts={}).version == 2


def test_disk_that_fills_at_any_step_shows_all_or_nothing(mount, make_saved_model):
    """Every number of inodes lets the push fail one step later, until it succeeds."""
    source = make_saved_model()
    outcomes = []
    for inodes in range(2, 20):
        store = LocalModelStore(mount(f"size=4m,nr_inodes={inodes}") / "serving")
        try:
            publication = store.publish(source, facts={})
        except ServingError as error:
            assert "No space left on device" in error.what
            assert store.versions() == []
            assert not list(store.root.glob(".staging*"))
            outcomes.append("failed")
        else:
            assert publication.version == 1
            assert store.versions()[-1].is_intact()
            outcomes.append("pushed")

    failures = outcomes.count("failed")
    assert failures >= 8
    assert outcomes == ["failed"] * failures + ["pushed"] * (18 - failures)


def test_read_only_file_system_is_named(mount, make_saved_model):
    target = mount("size=4m")
    store = LocalModelStore(target / "serving")
    store.publish(make_saved_model("a", b"a"), facts={})
    subprocess.run(["mount", "-o", "remount,ro", str(target)], check=True)

    with pytest.raises(ServingError, match="Read-only file system") as caught:
        store.publish(make_saved_model("b", b"b"), facts={})

    assert caught.value.where == str(store.root)
    assert "can write" in str(caught.value.hint)
    assert store.versions()[-1].version == 1


def test_a_disk_that_is_full_or_read_only_is_found_before_there_is_a_model(mount):
    """At every number of inodes that is too small for what a push writes."""
    failures = 0
    for inodes in range(2, 12):
        target = mount(f"size=1m,nr_inodes={inodes}")
        try:
            LocalModelStore(target / "serving").prepare()
        except UsageError as error:
            assert "No space left on device" in error.what
            assert "free some space" in str(error.hint)
            failures += 1
        else:
            assert inodes > 5
    assert 4 <= failures < 10

    subprocess.run(["mount", "-o", "remount,ro", str(target)], check=True)
    with pytest.raises(UsageError, match="Read-only file system"):
        LocalModelStore(target / "serving").prepare()
    with pytest.raises(UsageError, match="Read-only file system"):
        LocalModelStore(target / "elsewhere").prepare()
