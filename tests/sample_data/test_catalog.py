"""Writing, verifying and replacing sample data sets."""

import dataclasses
import hashlib
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from sample_data import catalog
from sample_data.catalog import MANIFEST_FILE, load_intact
from sample_data.data_set import ALL, DataSet, Records, Split
from sluice.errors import UsageError
from sluice.tfrecords import tfrecord

pytestmark = pytest.mark.unit

RECORDS = [f"record {number}".encode() for number in range(12)]
TOYS = DataSet(
    name="toys",
    description="toys",
    licence="none",
    gzip=False,
    splits=(Split("train", 7, 3), Split("eval", 3, 1), Split("test", 2, 2)),
    read=lambda path: {ALL: Records(len(RECORDS), RECORDS.__getitem__)},
)


@pytest.fixture
def register(monkeypatch):
    """Makes a data set known, the toys with changes."""

    def register(**changes):
        data_set = dataclasses.replace(TOYS, **changes)
        monkeypatch.setitem(catalog._DATA_SETS, data_set.name, data_set)

    return register


@pytest.fixture
def toys(register, tmp_path):
    register()
    return tmp_path / "data" / "toys"


def contents(directory):
    return {path.name: path.read_bytes() for path in directory.iterdir()}


def test_shards_splits_and_manifest(toys):
    manifest = catalog.make("toys", toys)
    assert [(shard.name, shard.records) for shard in manifest.shards] == [
        ("train-00000-of-00003.tfrecord", 3),
        ("train-00001-of-00003.tfrecord", 2),
        ("train-00002-of-00003.tfrecord", 2),
        ("eval-00000-of-00001.tfrecord", 3),
        ("test-00000-of-00002.tfrecord", 1),
        ("test-00001-of-00002.tfrecord", 1),
    ]
    paths = [toys / shard.name for shard in manifest.shards]
    records = [record for path in paths for record in tfrecord.read(path)]
    assert records != RECORDS
    assert sorted(records) == sorted(RECORDS)
    assert set(toys.iterdir()) == {toys / MANIFEST_FILE, *paths}
    stored = json.loads((toys / MANIFEST_FILE).read_text())
    assert stored["shards"][0] == manifest.shards[0].model_dump()
    # Files of no split do not matter.
    (toys / "training").touch()
    assert load_intact(toys) == manifest


def cut(size):
    return lambda path: path.write_bytes(path.read_bytes()[:size])


TRAIN = "train-00001-of-00003.tfrecord"


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        (TRAIN, cut(24)),  # between two records
        (TRAIN, Path.unlink),
        (MANIFEST_FILE, Path.unlink),
    ],
)
def test_a_damaged_data_set_is_rewritten(toys, name, damage):
    made = catalog.make("toys", toys)
    intact = contents(toys)
    damage(toys / name)
    assert catalog.make("toys", toys) == made
    assert contents(toys) == intact


CONTENT = b"published" * 1000


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        sent = {"/cut": CONTENT[:-5], "/other": b"a login page"}.get(self.path, CONTENT)
        self.send_response(404 if self.path == "/missing" else 200)
        length = len(CONTENT) if self.path == "/cut" else len(sent)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *arguments):
        pass


@pytest.mark.parametrize("place", ["file", "cut", "other", "missing"])
def test_a_download_is_checked(toys, register, place):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/{place}"
        downloads = {url: hashlib.sha256(CONTENT).hexdigest()}
        read = []

        def parse(path):
            read.append((path / place).read_bytes())
            return TOYS.read(path)

        register(files="published", downloads=downloads, read=parse)
        try:
            if place == "file":
                catalog.make("toys", toys)
            else:
                with pytest.raises(UsageError, match="could not be downloaded"):
                    catalog.make("toys", toys)
        finally:
            server.shutdown()
    assert read == ([CONTENT] if place == "file" else [])
    folder = toys.parent / ".downloads" / "toys"
    assert (folder / place).is_file() == bool(read)


def test_nothing_heavy_is_imported():
    code = """
import sys
from sample_data import catalog
print({"tensorflow", "tfx", "apache_beam", "sklearn", "numpy"} & sys.modules.keys())
"""
    root = Path(catalog.__file__).parents[1]
    command = [sys.executable, "-c", code]
    process = subprocess.run(command, cwd=root, check=True, capture_output=True)
    assert process.stdout == b"set()\n"


def test_what_is_not_of_the_data_set_is_never_replaced(toys, tmp_path):
    with pytest.raises(UsageError, match="ships with a package"):
        catalog.make("toys", toys, source=tmp_path)
    toys.parent.mkdir()
    toys.write_text("mine")
    with pytest.raises(UsageError, match="toys cannot be made: Not a directory"):
        catalog.make("toys", toys)
    toys.unlink()
    toys.mkdir()
    (toys / "notes.txt").write_text("mine")
    tfrecord.write(toys / "train-of-mine", [b"mine"])
    before = contents(toys)
    with pytest.raises(UsageError, match="contains other files too") as caught:
        catalog.make("toys", toys)
    assert caught.value.examples == ("notes.txt", "train-of-mine")
    assert contents(toys) == before
