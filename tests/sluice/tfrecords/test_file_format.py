"""Detection of other file formats."""

from __future__ import annotations

import pytest

from sluice.tfrecords.file_format import sniff_format

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("head", "said"),
    [
        (b"PAR1\x15\x04", "it begins as a Parquet file"),
        (b"\x89PNG\r\n\x1a\n", "it begins as a PNG image"),
        (b"Miller,Anna\n", "it begins as text"),
        (bytes(12), "it begins with zeros"),
        (b"\x01\x02\xfe", "it begins as nothing that is known here"),
    ],
)
def test_the_kind_is_named_and_no_byte_shown(head: bytes, said: str) -> None:
    assert sniff_format(head) == said
