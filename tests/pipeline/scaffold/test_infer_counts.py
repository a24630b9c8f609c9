"""Counts of features, and headers of images."""

from __future__ import annotations

import io
import math
import tracemalloc

import pytest
from PIL import Image

from pipeline.scaffold import summarize as module
from pipeline.scaffold.summarize import summarize
from sample_data.tf_example import encode
from sluice.errors import DataError
from sluice.tfrecords.image_header import ImageHeader, image_header

pytestmark = pytest.mark.unit


def picture(kind: str, mode: str = "RGB", size: tuple[int, int] = (5, 7)) -> bytes:
    file = io.BytesIO()
    Image.new(mode, size).save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize(
    ("kind", "mode", "channels"),
    [
        ("PNG", "L", 1),
        ("PNG", "LA", 2),
        ("PNG", "RGB", 3),
        ("PNG", "P", 3),
        ("PNG", "RGBA", 4),
        ("JPEG", "L", 1),
        ("JPEG", "RGB", 3),
        ("JPEG", "CMYK", 3),
        ("GIF", "P", 3),
        ("BMP", "RGB", 3),
        ("BMP", "L", 1),
        ("WEBP", "RGB", 3),
    ],
)
def test_a_header_says_format_size_and_channels(kind, mode, channels):
    expected = ImageHeader(kind.lower(), 5, 7, channels)

    assert image_header(picture(kind, mode)) == expected


def test_a_jpeg_with_a_thumbnail_in_front_has_its_own_size():
    exif = Image.Exif()
    exif[0x010E] = "x" * 2000
    file = io.BytesIO()
    Image.new("RGB", (40, 30)).save(file, "JPEG", exif=exif)

    assert image_header(file.getvalue()) == ImageHeader("jpeg", 40, 30, 3)


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
def test_truncated_image_headers_have_no_size(kind):
    data = picture(kind)
    for length in range(len(data)):
        header = image_header(data[:length])
        assert header is None or header.format == kind.lower()
        assert header is None or header.width in (0, 5)


@pytest.mark.parametrize(
    "data", [b"", b"BMW 320 with a long name", b"RIFF of a song", b"GIF", b"\xff\xd8"]
)
def test_bytes_that_are_not_an_image(data):
    assert image_header(data) is None


def test_counts_of_each_kind():
    summary = summarize(
        [
            encode({"a": [1], "b": [0.5], "c": [b"x"]}),
            encode({"a": [3], "b": [math.nan], "c": [b"y", b"x"]}),
            encode({"a": [1], "b": [-math.inf]}),
        ]
    )

    assert summary.records == 3
    a, b, c = (summary.features[name] for name in "abc")
    assert (a.kind, a.low, a.high, dict(a.counts)) == ("int", 1, 3, {1: 2, 3: 1})
    assert a.always
    assert a.single
    assert (b.kind, b.low, b.high) == ("float", 0.5, 0.5)
    assert (b.nans, b.infinities, b.distinct) == (1, 1, 1)
    assert (c.present, c.values, c.min_values, c.max_values) == (2, 3, 1, 2)
    assert dict(c.counts) == {b"x": 2, b"y": 1}
    assert (c.always, c.single) == (False, False)
    assert c.fraction == pytest.approx(2 / 3)


def test_an_empty_list_is_a_missing_value():
    # A feature "a" with an int64_list of no values, and one of no list at all.
    empty = bytes.fromhex("0a09 0a07 0a0161 1202 1a00".replace(" ", ""))
    none = bytes.fromhex("0a07 0a05 0a0161 1200".replace(" ", ""))

    feature = summarize([empty, none, encode({"a": [2]})]).features["a"]

    assert (feature.records, feature.present, feature.min_values) == (3, 1, 1)
    assert summarize([empty]).features["a"].kind is None


def test_records_of_different_types_are_counted_by_type():
    records = [encode({"a": [1]}), encode({"a": [b"1"]}), encode({"a": [b"2"]})]

    feature = summarize(records).features["a"]

    assert dict(feature.kinds) == {"int": 1, "bytes": 2}
    assert feature.kind == "bytes"


def test_images_are_counted_by_header_and_texts_by_encoding():
    records = [
        encode({"i": [picture("PNG")], "t": [b"caf\xc3\xa9"]}),
        encode({"i": [picture("PNG")], "t": [b"\xff\xfe"]}),
        encode({"i": [picture("JPEG")], "t": [b"z" * 300]}),
    ]

    features = summarize(records).features

    images = {header.format: count for header, count in features["i"].images.items()}
    assert images == {"png": 2, "jpeg": 1}
    text = features["t"]
    assert (text.not_text, text.longest_bytes, text.many) == (1, 300, True)
    assert text.distinct == 2


def test_known_values_are_counted_after_the_limit(monkeypatch):
    monkeypatch.setattr(module, "MAX_DISTINCT", 3)

    feature = summarize(encode({"a": [v]}) for v in (1, 2, 3, 4, 5, 1)).features["a"]

    assert dict(feature.counts) == {1: 2, 2: 1, 3: 1}
    assert feature.many
    assert feature.high == 5


def test_memory_does_not_grow_with_the_records(monkeypatch):
    monkeypatch.setattr(module, "MAX_DISTINCT", 1000)

    def peak(count: int) -> int:
        tracemalloc.start()
        summarize(
            encode({"id": [f"{n:0200d}".encode()], "x": [n / 7]}) for n in range(count)
        )
        top = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return top

    assert peak(5000) < 1.2 * peak(1500)


def test_a_record_that_is_no_tf_example_is_located():
    with pytest.raises(DataError, match="not a tf.Example") as caught:
        summarize([encode({"a": [1]}), b"\x07hello"])
    assert caught.value.where == "record 2"
    with pytest.raises(DataError) as caught:
        summarize([b"\x07"], lambda: "a file, record 9")
    assert caught.value.where == "a file, record 9"


def test_a_sequence_example_is_refused_by_name():
    with pytest.raises(DataError, match="SequenceExample"):
        summarize([b"\x12\x00"])
