"""The emulator of ``gs://``: all clients see the same objects, and keep them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.api_core.exceptions import GoogleAPICallError
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from tests.cloud.faulty_gcs import FAULTY_GCS, control
from tests.kit.gcs.gcs_emulator import GcsEmulator

pytestmark = pytest.mark.cloud

LARGE = b"0123456789abcdef" * (9 << 16)  # 9 MiB, an upload in several requests.

# With TensorFlow and Beam in one process, since each import takes seconds.
CHILD = """
import tensorflow as tf
from apache_beam.io.filesystems import FileSystems
from apache_beam.io.gcp import gcsfilesystem

bucket = "gs://bucket/"
gfile = tf.io.gfile
assert gfile.GFile(bucket + "in/large", "rb").read() == b"0123456789abcdef" * (9 << 16)
with gfile.GFile(bucket + "tf/one", "wb") as file:
    file.write(b"from TensorFlow")
with gfile.GFile(bucket + "tf/empty", "wb") as file:
    file.write(b"")
gfile.rename(bucket + "tf/one", bucket + "tf/two")
assert gfile.listdir(bucket + "tf") == ["empty", "two"], gfile.listdir(bucket + "tf")
assert gfile.glob(bucket + "*/large") == [bucket + "in/large"]
assert not gfile.exists("gs://no-such-bucket/x")
module = tf.Module()
module.value = tf.Variable(3.0)
tf.saved_model.save(module, bucket + "model")
assert tf.saved_model.load(bucket + "model").value.numpy() == 3
manager = tf.train.CheckpointManager(
    tf.train.Checkpoint(m=module), bucket + "checkpoints", max_to_keep=1
)
manager.save()
manager.save()
assert tf.train.latest_checkpoint(bucket + "checkpoints").endswith("ckpt-2")

with FileSystems.create(bucket + "beam/one") as file:
    file.write(b"from Beam")
FileSystems.rename([bucket + "beam/one"], [bucket + "beam/two"])
(found,) = FileSystems.match([bucket + "beam/*"])
assert [one.path for one in found.metadata_list] == [bucket + "beam/two"]
FileSystems.copy([bucket + "beam/two"], [bucket + "beam/three"])
FileSystems.delete([bucket + "beam/two"])
assert FileSystems.open(bucket + "tf/two").read() == b"from TensorFlow"
"""


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GcsEmulator]:
    with GcsEmulator(tmp_path / "gcs", ["bucket"], FAULTY_GCS) as started:
        for name, value in started.environment().items():
            monkeypatch.setenv(name, value)
        yield started


@pytest.fixture
def server(emulator: GcsEmulator, tmp_path: Path) -> Any:
    """Its methods are those of ``FaultyGcs``."""
    return control(tmp_path / "gcs")


@pytest.fixture
def bucket(emulator: GcsEmulator) -> Any:
    """The bucket, as google-cloud-storage has it."""
    return storage.Client("emulated", AnonymousCredentials()).bucket("bucket")


def _names(found: Any) -> list[str]:
    return [blob.name for blob in found]


def test_tensorflow_beam_and_our_client_share_the_objects(server, bucket, tmp_path):
    bucket.blob("in/large").upload_from_string(LARGE)
    script = tmp_path / "child.py"
    script.write_text(CHILD)
    started_s = time.monotonic()
    ended = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False
    )
    assert not ended.returncode, ended.stderr
    # Beam looks for credentials, and TensorFlow for a token, for half a minute each.
    assert time.monotonic() - started_s < 60
    assert bucket.blob("tf/two").download_as_bytes() == b"from TensorFlow"
    assert bucket.blob("beam/three").download_as_bytes() == b"from Beam"
    assert _names(bucket.list_blobs(prefix="beam/")) == ["beam/three"]
    assert "model/saved_model.pb" in _names(bucket.list_blobs(prefix="model/"))
    # The reader of the record in the other process uses the proxy, not this address.
    assert any("GET /bucket/in/large" in one for one in server.requests())


def test_names_are_free_and_a_page_counts_folders(bucket):
    long = "/".join(["folder"] * 120)
    for name in ("a", "a/b", "a/", long, "ä?#%2F b", "p/1/x", "p/2/x", "p/3", "p/4/x"):
        bucket.blob(name).upload_from_string(name)
        assert bucket.blob(name).download_as_text() == name
    found = bucket.list_blobs(prefix="p/", delimiter="/")
    pages = [(_names(page), set(found.prefixes)) for page in found.pages]
    assert pages == [
        (["p/3"], {"p/1/", "p/2/"}),
        ([], {"p/1/", "p/2/", "p/4/"}),
    ]


@pytest.mark.parametrize("chunk", [None, 1 << 18], ids=["multipart", "resumable"])
def test_an_upload_heeds_its_precondition(bucket, chunk):
    def write(content: bytes, generation: int) -> Any:
        blob = bucket.blob("record", chunk_size=chunk)
        blob.upload_from_string(
            content, if_generation_match=generation, retry=None, checksum="crc32c"
        )
        return blob

    first = write(b"1" * (1 << 19), 0)
    with pytest.raises(GoogleAPICallError, match="412"):
        write(b"2", 0)
    second = write(b"3", first.generation)
    with pytest.raises(GoogleAPICallError, match="412"):
        write(b"4", first.generation)
    assert bucket.blob("record").download_as_bytes() == b"3"
    with pytest.raises(GoogleAPICallError, match="404"):
        first.download_as_bytes(retry=None)
    assert second.generation > first.generation


def test_every_change_heeds_its_precondition(bucket):
    bucket.blob("a").upload_from_string("1")
    bucket.blob("b").upload_from_string("2")
    wrong = {"if_generation_match": 7, "retry": None}
    with pytest.raises(GoogleAPICallError, match="412"):
        bucket.blob("a").delete(**wrong)
    with pytest.raises(GoogleAPICallError, match="412"):
        bucket.blob("a").rewrite(bucket.blob("b"), **wrong)
    with pytest.raises(GoogleAPICallError, match="412"):
        bucket.copy_blob(bucket.blob("a"), bucket, "b", **wrong)
    with pytest.raises(GoogleAPICallError, match="412"):
        bucket.blob("c").compose([bucket.blob("a")], **wrong)
    bucket.blob("c").compose(
        [bucket.blob("a"), bucket.blob("b")], if_generation_match=0
    )
    assert bucket.blob("c").download_as_bytes() == b"12"
