"""TensorFlow's own reader and writer of ``gs://`` against faults of the service."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cloud.faulty_gcs import CUT, LOST

pytestmark = pytest.mark.cloud


@pytest.fixture
def gfile() -> Any:
    import tensorflow as tf

    return tf.io.gfile


def _read(gfile: Any, uri: str) -> bytes:
    with gfile.GFile(uri, "rb") as file:
        return file.read()


@pytest.mark.parametrize("status", [503, 429, CUT])
def test_a_read_that_fails_for_a_moment_is_tried_again(bucket, gfile, status):
    content = bytes(range(256)) * 999
    uri = bucket.put("in/file", content)
    bucket.fail("GET", "/in/file", status)
    assert _read(gfile, uri) == content


@pytest.mark.parametrize("status", [503, CUT, LOST])
def test_an_interrupted_upload_is_resumed(bucket, gfile, status):
    bucket.server.fail("PUT", "upload/session", status)
    content = bytes(range(256)) * 9999
    with gfile.GFile(bucket.uri("out/file"), "wb") as file:
        file.write(content)
    assert bucket.get("out/file") == content


def test_an_error_that_stays_is_raised(bucket, gfile):
    import tensorflow as tf

    uri = bucket.put("in/file", b"content")
    bucket.fail("GET", "/in/file", 403, times=99)
    with pytest.raises(tf.errors.PermissionDeniedError):
        _read(gfile, uri)
    with pytest.raises(tf.errors.NotFoundError):
        _read(gfile, "gs://no-such-bucket/file")
