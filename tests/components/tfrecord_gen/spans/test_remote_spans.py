"""Span selection on remote storage, with TensorFlow's in-memory file system."""

from __future__ import annotations

import time
from uuid import uuid4

import pytest

from components.tfrecord_gen.spans.completeness import CompleteWhen
from components.tfrecord_gen.spans.file_lister import FileLister
from components.tfrecord_gen.spans.select_spans import select_spans
from sluice.errors import DataError, UsageError

pytestmark = pytest.mark.tf

PATTERNS: dict[str | None, str] = {None: "{YYYY}{MM}{DD}/v{VERSION}/part *"}


def touch(base: str, *names: str) -> None:
    import tensorflow as tf

    for name in names:
        path = f"{base}/{name}"
        tf.io.gfile.makedirs(path.rpartition("/")[0])
        with tf.io.gfile.GFile(path, "w") as file:
            file.write("12345")


def test_spans_are_selected_from_listings() -> None:
    base = f"ram://{uuid4()}/trips [1]"
    touch(base, "20240101/v1/part 0", "20240101/v1/_SUCCESS", "20240102/v1/part 0")
    marked = CompleteWhen(marker="_SUCCESS")
    window = select_spans(base, PATTERNS, 2, marked, time.time())
    assert [file.path for file in window.files] == [f"{base}/20240101/v1/part 0"]
    assert window.skipped[0].why == f"no _SUCCESS in {base}/20240102/v1"
    assert FileLister(base).stat(window.relative(window.files[0])).size_bytes == 5

    # This file system keeps no times: all was written in 1970.
    quiet = CompleteWhen(quiet_for_s=3_600)
    with pytest.raises(DataError, match="was changed 10 s ago"):
        select_spans(base, PATTERNS, 2, quiet, 10)
    later = select_spans(base, PATTERNS, 2, quiet, 3_600)
    assert [span.number for span in later.spans] == [19_723, 19_724]


def test_missing_data_is_reported() -> None:
    base = f"ram://{uuid4()}/nowhere"
    with pytest.raises(UsageError, match="nowhere is empty or does not exist"):
        select_spans(base, PATTERNS, 1, CompleteWhen(), time.time())
    with pytest.raises(UsageError, match="cannot be read"):
        FileLister(base).stat("gone")
